// Runs requests on an engine and waits, for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::testing {

struct Answer {
  std::vector<TokenId> token_ids;
  Usage usage;
  std::vector<float> attention_mass;  // of the last step, when asked for
  std::string error;
};

Request greedy_request(std::vector<TokenId> prompt, std::int32_t max_tokens);

// Submits all requests at once and waits for all; answers in the same order.
std::vector<Answer> generate(Engine& engine, std::vector<Request> requests);

// `count` prompts of min..max seeded random tokens below `vocab_size`.
std::vector<std::vector<TokenId>> random_prompts(std::int32_t count, std::int32_t min_tokens,
                                                 std::int32_t max_tokens, std::int32_t vocab_size,
                                                 std::uint32_t seed);

}  // namespace kvasir::testing
