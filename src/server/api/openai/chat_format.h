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
#include "server/api/tool_calls.h"
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
    ToolCallFormat tool_calls = ToolCallFormat::kNone;  // that are looked for in the answer
    std::vector<std::string> tool_names;
    bool parallel_tool_calls = true;
  };

  // Borrows both.
  ChatFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids);

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage& usage, http::Events& events) override;

 private:
  struct Delta {
    std::int32_t choice = 0;
    bool has_role = false;
    const std::string* content = nullptr;
    const ToolCall* call = nullptr;
    std::int32_t call_index = 0;
    std::span<const PositionLogprobs> logprobs = {};
    std::optional<std::string_view> finish_reason = {};
  };
  ToolCallReader reader() const;
  void write_message(JsonWriter& json, const std::string& text, std::int32_t& num_calls) const;
  void write_call_delta(JsonWriter& json, const Delta& delta) const;
  void append_calls(std::int32_t choice, std::span<const ToolCall> calls, const Usage& usage,
                    http::Events& events);
  void append_chunk(const Delta& delta, const Usage& usage, http::Events& events) const;

  const Options options_;
  const text::Tokenizer& tokenizer_;
  IdSource& ids_;
  std::vector<bool> has_begun_;          // by choice
  std::vector<ToolCallReader> readers_;  // likewise, of a stream
};

}  // namespace kvasir::server::api
