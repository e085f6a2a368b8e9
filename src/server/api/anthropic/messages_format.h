// Answers of /v1/messages: a message of content blocks, or the events that build one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "server/api/answer_format.h"
#include "server/api/tool_calls/tool_call_reader.h"
#include "server/id_source.h"

namespace kvasir::server::api {

class MessagesFormat final : public AnswerFormat {
 public:
  struct Options {
    std::string id;
    std::string model;
    ToolCallReading tool_calls;
  };

  // Borrows `ids`.
  MessagesFormat(Options options, IdSource& ids);

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage& usage, http::Events& events) override;
  void append_end(http::Events&) const override {}
  void append_failure(const ApiError& error, http::Events& events) const override;

 private:
  void begin_message(JsonWriter& json) const;
  enum class Block : std::uint8_t { kNone, kText, kThinking };

  void append_text(Block block, std::string_view text, http::Events& events);
  void append_part(const AnswerPart& part, http::Events& events);
  void begin_call(std::string_view name, http::Events& events);
  void append_arguments(std::string_view arguments, http::Events& events);
  void end_block(http::Events& events);
  void end_open_block(http::Events& events);
  void append_start(const Usage& usage, http::Events& events);

  const Options options_;
  IdSource& ids_;
  ToolCallReader reader_;  // of a stream, as are all below
  bool has_begun_ = false;
  Block open_ = Block::kNone;    // of those whose text comes piece by piece
  std::int32_t num_blocks_ = 0;  // begun
  FinishReason finish_reason_ = FinishReason::kStop;
  std::string stop_string_;
};

}  // namespace kvasir::server::api
