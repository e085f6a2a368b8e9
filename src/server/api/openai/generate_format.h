// Answers of /v1/generate: text and tokens, without OpenAI's envelope.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/api/answer_format.h"

namespace kvasir::server::api {

// {"id","text","token_ids","finish_reason","prompt_tokens","completion_tokens","cached_tokens"}; a stream has
// one such object an event, with the news alone.
class GenerateFormat final : public AnswerFormat {
 public:
  explicit GenerateFormat(std::string id) : id_(std::move(id)) {}

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage&, http::Events&) override {}

 private:
  const std::string id_;
};

}  // namespace kvasir::server::api
