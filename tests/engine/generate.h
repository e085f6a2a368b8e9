// Runs requests on an engine and waits, for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::testing {

struct Answer {
  std::vector<TokenId> token_ids;
  std::vector<PositionLogprobs> logprobs;  // of token_ids, when asked for
  Usage usage;
  std::vector<float> attention_scores;  // of the last step, when asked for
  std::vector<PositionLogprobs> prompt_logprobs;
  std::vector<float> embedding;
  std::optional<FinishReason> finish_reason;  // of the choice that ended last
  std::string error;
};

Request greedy_request(std::vector<TokenId> prompt, std::int32_t max_tokens);

// Submits all requests at once and waits for all; answers in the same order.
std::vector<Answer> generate(Engine& engine, std::vector<Request> requests);

// Once so many requests have finished: outputs go out before the step that brought them counts.
EngineStats stats_after(Engine& engine, std::int64_t num_requests);

// `count` prompts of min..max seeded random tokens below `vocab_size`.
std::vector<std::vector<TokenId>> random_prompts(std::int32_t count, std::int32_t min_tokens,
                                                 std::int32_t max_tokens, std::int32_t vocab_size,
                                                 std::uint32_t seed);

}  // namespace kvasir::testing
