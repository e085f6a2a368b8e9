// Chooses the next token of one sequence from one row of logits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/request.h"
#include "kvasir/result.h"
#include "kvasir/sampling_params.h"
#include "sampling/allowed_tokens.h"
#include "sampling/candidate.h"
#include "sampling/distribution.h"
#include "sampling/logit_row.h"

namespace kvasir::sampling {

// The logprob reported for a token that cannot be chosen, whose own would be -inf, and the least reported at
// all.
inline constexpr float kMinLogprob = -9999.0f;

// Temperatures below this are greedy: dividing by them would overflow.
inline constexpr float kGreedyBelowTemperature = 1e-5f;
inline bool is_greedy(const SamplingParams& params) { return params.temperature < kGreedyBelowTemperature; }

struct SampleInput {
  // [vocab_size]; changed in place by bias, suppression, penalties and mask. Those that a mask leaves out whole tiles of
  // need not be known; where reads_no_logit() holds it may be empty.
  std::span<float> logits;
  // As LogitRow::assign takes them, of the logits as they are given; or empty.
  std::span<const float> tile_maxima;
  const SamplingParams& params;  // validated
  std::span<const TokenId> prompt;
  std::span<const TokenId> generated;  // its length is the position the random draw is keyed by
  std::span<const TokenId>
      suppressed;          // must not be chosen: end-of-generation and stop ids before min_tokens
  AllowedTokens allowed;
  std::uint64_t seed = 0;  // params.seed, or one the engine drew for the request
  std::int32_t choice_index = 0;

  // The token is a guess, for another model to check by stages/residual.h: what it is drawn from goes here. Null: it is
  // no guess. Greedy tokens are drawn from nothing.
  Distribution* guess_distribution = nullptr;
  // A guess of the token is to be checked so, which was drawn from this. Null: none is. Greedy tokens look at no guess.
  const Distribution* guess_drawn_from = nullptr;
  TokenId guess = kNoToken;
};

struct SampleOutput {
  TokenId token = kNoToken;
  std::optional<PositionLogprobs> logprobs;  // when params.logprobs is set
};

// Buffers that calls reuse: in a steady state sample() allocates nothing, unless logprobs are asked for. One
// per thread.
struct SamplerScratch {
  LogitRow row;
  std::vector<std::int32_t> counts;
  std::vector<double> tile_sums;
  std::vector<float> thresholds;
  std::vector<Candidate> candidates;
  std::vector<Candidate> selection;
};

// True when sample() reads no logit: there is one token to choose.
bool reads_no_logit(std::span<const TokenId> suppressed, const AllowedTokens& allowed);

// True when sample() reads no logit but the greatest of those that are allowed, and those as great: others need not be
// known.
bool reads_argmax_only(const SamplingParams& params, std::span<const TokenId> suppressed);

// In this order, as vLLM has it: logit bias, suppression, penalties, mask | logprobs are of this distribution |
// temperature, min-p (of the most likely token's probability), top-k, top-p (of what top-k left), draw.
// Temperature 0 takes the most likely token, the lowest id among equals. Equal seeds, choices and rows give
// equal tokens whatever else runs. Never sorts the vocabulary.
// With guess_drawn_from the token has the same distribution, but depends on the guess.
//
// Error when a logit is NaN or +inf (kBadFile: finite weights may be too large for floats) or every token is
// impossible (kUsage): it concerns this request only.
// Thread safety: concurrent calls need their own scratch and logits.
Result<SampleOutput> sample(const SampleInput& input, SamplerScratch& scratch);

// The answer of sample() for an only token, when asked for num_top alternatives.
PositionLogprobs certain_logprobs(TokenId token, std::int32_t num_top);

// Log-probabilities under softmax(logits) of `token` and of the num_top most likely tokens, with ranks; used
// as it is for prompt tokens. Errors as for sample(). Requires: 0 <= token < logits.size().
Result<PositionLogprobs> logprobs_of(std::span<const float> logits, TokenId token, std::int32_t num_top,
                                     SamplerScratch& scratch);

}  // namespace kvasir::sampling
