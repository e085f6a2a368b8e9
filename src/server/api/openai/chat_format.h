// Chat answers: {"object":"chat.completion"} and its chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "server/api/answer_format.h"
#include "server/api/openai/answer_json.h"
#include "server/api/tool_calls/reasoning_tokens.h"
#include "server/api/tool_calls/tool_call_reader.h"
#include "server/api/tools.h"
#include "server/id_source.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

class ChatFormat final : public AnswerFormat {
 public:
  struct Options {
    AnswerHeader header;
    std::int32_t num_choices = 1;
    bool logprobs = false;
    bool prompt_logprobs = false;
    bool timings = false;
    ToolCallReading tool_calls;
    std::vector<ToolOrigin> tool_origins;
  };

  // Borrows both.
  ChatFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids);

  void note_search(std::string_view ended_by) override { search_ended_by_ = ended_by; }
  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage& usage, http::Events& events) override;

 private:
  struct Delta {
    std::int32_t choice = 0;
    bool has_role = false;
    const std::string* content = nullptr;
    const std::string* reasoning = nullptr;
    const AnswerPart* call = nullptr;  // its beginning, or a piece of its arguments
    std::int32_t call_index = 0;
    bool is_custom = false;  // that call
    std::span<const PositionLogprobs> logprobs = {};
    std::optional<std::string_view> finish_reason = {};
  };
  // Of a stream.
  struct Stream {
    ToolCallReader reader;
    ReasoningTokens reasoning_tokens;
    bool has_begun = false;
    std::int32_t num_calls = 0;  // begun
    bool is_custom = false;      // the call that is open
    std::string arguments;       // of a custom tool's call
  };
  bool is_custom(std::string_view shown_name) const;
  void write_call(JsonWriter& json, const ToolCall& call) const;
  void write_message(JsonWriter& json, const ReadAnswer& message) const;
  void write_call_delta(JsonWriter& json, const Delta& delta) const;
  std::int32_t num_reasoning_tokens() const;
  void append_part(std::int32_t choice, const AnswerPart& part, const Usage& usage, http::Events& events);
  void append_chunk(const Delta& delta, const Usage& usage, http::Events& events) const;

  const Options options_;
  const text::Tokenizer& tokenizer_;
  IdSource& ids_;
  std::vector<Stream> streams_;  // by choice
  RequestCost cost_;             // of the stream so far
  std::string search_ended_by_;
};

}  // namespace kvasir::server::api
