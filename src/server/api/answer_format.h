// How one endpoint says what the engine made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/request.h"
#include "server/api_error.h"
#include "server/http/event.h"

namespace kvasir::server::api {

// Everything one choice became. Choices count over all prompts: prompt p has n p .. n p + n - 1.
struct ChoiceResult {
  std::string text;
  std::vector<TokenId> token_ids;
  std::vector<PositionLogprobs> logprobs;
  std::vector<PositionLogprobs> prompt_logprobs;  // at the first choice of each prompt
  std::vector<float> embedding;                   // of an embedding request, alone
  FinishReason finish_reason = FinishReason::kStop;
  std::string stop_string;  // which one ended it
  RequestCost cost;         // of its request so far; complete with the last choice
};

// Thread safety: none; one answer has one. Keeps what a stream has already said.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // Whether the token that ended a choice has a place among its tokens, though it has no text.
  virtual bool shows_stop_token() const { return false; }
  // The answer was chosen from several, and why no more were drawn. Before whole().
  virtual void note_search(std::string_view /*ended_by*/) {}
  // The body of an answer in one piece.
  virtual std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) = 0;
  // Appends the events that one output of a choice gives: none, one or several.
  virtual void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                             http::Events& events) = 0;
  // Appends the event after the last choice has ended, if the client asked for one.
  virtual void append_last_events(const Usage& usage, http::Events& events) = 0;
  // Whether the last event of a stream repeats the whole answer, which is therefore kept until then.
  virtual bool keeps_answer() const { return false; }
  // Appends what ends a stream that is complete.
  virtual void append_end(http::Events& events) const {
    events.push_back({.data = "[DONE]", .kind = http::Event::Kind::kEnd});
  }
  // Appends the event that says why a stream ends before it is.
  virtual void append_failure(const ApiError& error, http::Events& events) const {
    events.push_back({.data = error_json(error, ErrorShape::kOpenAi), .kind = http::Event::Kind::kFailure});
  }
};

}  // namespace kvasir::server::api
