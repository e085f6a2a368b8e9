// Chat answers: {"object":"chat.completion"} and its chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "server/openai/answer_format.h"
#include "server/openai/answer_json.h"
#include "text/tokenizer.h"

namespace kvasir::server {

class ChatFormat final : public AnswerFormat {
 public:
  struct Options {
    AnswerHeader header;
    std::int32_t num_choices = 1;
    bool logprobs = false;
    bool prompt_logprobs = false;
  };

  ChatFormat(Options options, const text::Tokenizer& tokenizer);

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     std::string& events) override;
  void append_last_events(const Usage& usage, std::string& events) override;

 private:
  struct Delta {
    std::int32_t choice = 0;
    bool has_role = false;
    const std::string* content = nullptr;
    std::span<const PositionLogprobs> logprobs = {};
    std::optional<FinishReason> finish_reason = {};
  };
  void append_chunk(const Delta& delta, const Usage& usage, std::string& events) const;

  const Options options_;
  const text::Tokenizer& tokenizer_;
  std::vector<bool> has_begun_;  // by choice
};

}  // namespace kvasir::server
