// An answer as it was served, kept until the exact path has scored it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kv/policy/journal.h"
#include "kvasir/request.h"
#include "quality/canary.h"
#include "quality/shadow_score.h"

namespace kvasir::quality {

struct ServedAnswer {
  KvParams kv;                       // that it was served under
  KvPromise promise;                 // that it has
  std::vector<TokenId> tokens;       // the prompt, then the answer
  std::int32_t num_prompt_tokens = 0;
  std::vector<PositionLogprobs> logprobs;  // of the answer's tokens, with kServedAlternatives
  std::string adapter;
  std::optional<float> adapter_scale;
  AdapterHold adapter_hold;
  ServedCost cost;
  std::string client_id, tenant;  // of its request, for a log
  RequestId request_id{};
  std::int32_t num_cached_tokens = 0;  // of the prompt
  bool is_downgraded = false;          // another policy served it than was asked for, for a part of it at least
  std::optional<std::int32_t> logprobs_asked;  // alternatives that its client gets; nothing: no log-probabilities
};

// An answer whose distribution is the model's own at every token: one, without guide, penalties, bias or minimum.
bool can_be_shadow(const Request& request);

// Prepares the request for being kept: it asks for the alternatives that are compared.
ServedAnswer begin_answer(Request& request, KvPromise promise);

// Keeps what the output brings, and leaves in it what its client asked for.
void keep(ServedAnswer& answer, RequestOutput& output);

// A row for the log. No score: the answer could not be scored. One that no policy has touched yet is not scored either.
kv::ShadowRecord record_of(const ServedAnswer& answer, const std::optional<ShadowScore>& score);

// The request by which the exact path scores it: prompt and answer are read as one prompt, behind all others.
Request scoring_request(const ServedAnswer& answer);

}  // namespace kvasir::quality
