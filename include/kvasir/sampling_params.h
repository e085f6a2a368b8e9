// How one request wants its tokens chosen and where it stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir {

struct SamplingParams {
  float temperature = 1.0f;         // 0: greedy
  std::int32_t top_k = 0;           // 0: off
  float top_p = 1.0f;               // [0, 1]; 1: off, 0: the most likely token
  float min_p = 0.0f;               // [0, 1]; 0: off
  float repetition_penalty = 1.0f;  // > 0; divides positive and multiplies negative logits of seen tokens
  float presence_penalty = 0.0f;    // [-2, 2]; subtracted once for each generated token
  float frequency_penalty = 0.0f;   // [-2, 2]; subtracted per occurrence among generated tokens
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::vector<TokenId> allowed_token_ids;  // no other is chosen, the ends among them; empty: all are allowed
  std::optional<std::uint64_t> seed;  // same seed, same tokens, whatever the batch

  std::int32_t n = 1;                      // choices; they share the prompt's KV
  std::optional<std::int32_t> max_tokens;  // nothing: as many as the context holds; 0: only the prompt
  std::int32_t min_tokens = 0;             // end-of-generation and stops are held off until then
  bool ignore_eos = false;
  // Above 0: the n best answers that a beam search of that width finds, the best first, instead of n that are drawn. Summed
  // log-probabilities after bias and penalties count, over length ^ length_penalty; temperature and what cuts the
  // distribution do not. Answers come whole. At least n.
  std::int32_t beam_width = 0;
  float length_penalty = 1.0f;
  std::vector<std::string> stop;  // strings, matched across token edges
  std::vector<TokenId> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  std::vector<TokenId> shown_special_tokens;  // whose text is shown even so

  std::optional<std::int32_t> logprobs;         // alternatives per generated token; 0: only the chosen one
  std::optional<std::int32_t> prompt_logprobs;  // the same for each prompt token
};

// The largest values that validate() lets pass; the server's limits, which are lower, go no further.
inline constexpr std::int32_t kMaxChoices = 128;
inline constexpr std::int32_t kMaxLogprobs = 1000;
inline constexpr std::int32_t kMaxStopStrings = 1024;
inline constexpr std::int32_t kMaxStopStringBytes = 64 << 10;
inline constexpr std::int32_t kMaxLogitBias = 1 << 16;

// Error (kUsage) naming field, limit and value when one is out of range.
Status validate(const SamplingParams& params, std::int32_t vocab_size);

}  // namespace kvasir
