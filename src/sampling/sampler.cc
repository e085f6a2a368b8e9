#include "sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sampling/fast_exp.h"
#include "sampling/gumbel_noise.h"
#include "sampling/philox.h"
#include "sampling/stages/draw.h"
#include "sampling/stages/gumbel_max.h"
#include "sampling/stages/logit_bias.h"
#include "sampling/stages/penalties.h"
#include "sampling/stages/residual.h"
#include "sampling/stages/top_k.h"
#include "sampling/stages/top_p.h"

namespace kvasir::sampling {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLeastPossible = std::numeric_limits<float>::lowest();  // a logit below it is -inf: never chosen

bool changes_logits(const SamplingParams& params, std::span<const TokenId> suppressed) {
  return !params.logit_bias.empty() || !suppressed.empty() || has_penalties(params);
}

Status check_row(const LogitRow& row) {
  if (row.has_nan())
    return make_error(ErrorKind::kBadFile, "the model computed a logit that is not a number");
  if (row.max() == kInfinity) return make_error(ErrorKind::kBadFile, "the model computed an infinite logit");
  if (row.max() == -kInfinity) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("none of the {} tokens of the vocabulary may be chosen", row.logits().size()));
  }
  return {};
}

double weigh(std::vector<Candidate>& candidates, float max, float inverse_temperature) {
  double total = 0.0;
  for (Candidate& candidate : candidates) {
    candidate.weight = fast_exp((candidate.logit - max) * inverse_temperature);
    total += candidate.weight;
  }
  return total;
}

// Leaves the nucleus of the whole row in scratch.candidates: those near the maximum, then further and further
// down until they hold `top_p` of the row's mass.
void gather_nucleus(const LogitRow& row, float top_p, float inverse_temperature, SamplerScratch& scratch) {
  constexpr float kFirstDepth = 4.0f;  // in units of temperature: e^-4 = 1/55 of the greatest probability
  constexpr float kLastDepth = 87.0f;  // fast_exp is 0 beyond
  const double mass = top_p * row.sum_exp(inverse_temperature, scratch.tile_sums);
  for (float depth = kFirstDepth;; depth *= 2.0f) {
    const bool everything = depth > kLastDepth;
    row.gather(everything ? kLeastPossible : row.max() - depth / inverse_temperature, scratch.candidates);
    if (weigh(scratch.candidates, row.max(), inverse_temperature) >= mass || everything) break;
  }
  keep_top_p(scratch.candidates, mass, scratch.selection);
}

bool has_top_k(const SamplingParams& params, const LogitRow& row) {
  return params.top_k > 0 && static_cast<std::size_t>(params.top_k) < row.logits().size();
}

bool is_filtered(const SamplingParams& params, const LogitRow& row) {
  return has_top_k(params, row) || params.min_p > 0.0f || params.top_p < 1.0f;
}

// Leaves what may be drawn in scratch.candidates. Requires: is_filtered().
void gather_filtered(const SamplingParams& params, SamplerScratch& scratch) {
  const LogitRow& row = scratch.row;
  const float inverse_temperature = 1.0f / params.temperature;
  if (!has_top_k(params, row) && params.min_p <= 0.0f) {
    return gather_nucleus(row, params.top_p, inverse_temperature, scratch);
  }
  float threshold = kLeastPossible;
  if (params.min_p > 0.0f) threshold = row.max() + params.temperature * std::log(params.min_p);
  if (has_top_k(params, row)) {
    const auto k = static_cast<std::size_t>(params.top_k);
    row.gather(std::max(threshold, row.threshold_for(k, scratch.thresholds)), scratch.candidates);
    keep_top_k(scratch.candidates, k, scratch.selection);
  } else {
    row.gather(threshold, scratch.candidates);
  }
  const double total = weigh(scratch.candidates, row.max(), inverse_temperature);
  if (params.top_p < 1.0f) keep_top_p(scratch.candidates, params.top_p * total, scratch.selection);
}

double uniform_of(const SampleInput& input, Draw draw) {
  return uniform_draw(input.seed, static_cast<std::uint32_t>(input.choice_index), input.generated.size(), draw);
}

// Whoever guesses is free to leave the least likely tokens out.
TokenId draw_guess(const SampleInput& input, SamplerScratch& scratch) {
  constexpr float kDepth = 12.0f;  // in units of temperature: e^-12 of the greatest probability
  const LogitRow& row = scratch.row;
  if (is_filtered(input.params, row)) {
    gather_filtered(input.params, scratch);
  } else {
    row.gather(row.max() - kDepth * input.params.temperature, scratch.candidates);
    weigh(scratch.candidates, row.max(), 1.0f / input.params.temperature);
  }
  keep_top_k(scratch.candidates, Distribution::kMaxTokens, scratch.selection);
  input.guess_distribution->assign(scratch.candidates);
  return draw(scratch.candidates, uniform_of(input, Draw::kGuess));
}

// Most guesses count, so that the tokens of an unfiltered row are gathered only where one does not.
TokenId check_guess(const SampleInput& input, SamplerScratch& scratch) {
  const LogitRow& row = scratch.row;
  const float inverse_temperature = 1.0f / input.params.temperature;
  const bool is_whole = !is_filtered(input.params, row);
  double total = 0.0, weight = 0.0;
  if (is_whole) {
    total = row.sum_exp(inverse_temperature, scratch.tile_sums);
    weight = row.is_possible(input.guess)
                 ? fast_exp((row.logits()[static_cast<std::size_t>(input.guess)] - row.max()) * inverse_temperature)
                 : 0.0f;
  } else {
    gather_filtered(input.params, scratch);
    for (const Candidate& candidate : scratch.candidates) {
      total += candidate.weight;
      if (candidate.token == input.guess) weight = candidate.weight;
    }
  }
  const Distribution& q = *input.guess_drawn_from;
  if (accepts_guess(weight / total, q.probability_of(input.guess), uniform_of(input, Draw::kAcceptance))) return input.guess;
  if (is_whole) {
    row.gather(kLeastPossible, scratch.candidates);
    weigh(scratch.candidates, row.max(), inverse_temperature);
  }
  const TokenId token = draw_residual(scratch.candidates, total, q, uniform_of(input, Draw::kResidual));
  return token == kNoToken ? input.guess : token;
}

TokenId draw_token(const SampleInput& input, SamplerScratch& scratch) {
  if (input.guess_distribution != nullptr) return draw_guess(input, scratch);
  if (input.guess_drawn_from != nullptr) return check_guess(input, scratch);
  const GumbelNoise noise(input.seed, static_cast<std::uint32_t>(input.choice_index), input.generated.size());
  if (!is_filtered(input.params, scratch.row)) return gumbel_max(scratch.row, 1.0f / input.params.temperature, noise);
  gather_filtered(input.params, scratch);
  return gumbel_max(scratch.candidates, noise);
}

// Alternatives have at least the logit `least`.
PositionLogprobs logprobs_of_row(TokenId token, std::int32_t num_top, float least, SamplerScratch& scratch) {
  const LogitRow& row = scratch.row;
  const double log_sum = row.max() + std::log(row.sum_exp(1.0f, scratch.tile_sums));
  const auto logprob = [log_sum](float logit) {
    return std::max(kMinLogprob, static_cast<float>(static_cast<double>(logit) - log_sum));
  };
  PositionLogprobs out;
  out.chosen = {.token = token,
                .logprob = logprob(row.logits()[static_cast<std::size_t>(token)]),
                .rank = static_cast<std::int32_t>(row.num_more_likely(token)) + 1};
  if (num_top <= 0) return out;
  const std::size_t most = std::min(static_cast<std::size_t>(num_top), row.logits().size());
  row.gather(std::max(row.threshold_for(most, scratch.thresholds), least), scratch.candidates);
  const std::size_t count = std::min(most, scratch.candidates.size());
  const auto end = scratch.candidates.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(scratch.candidates.begin(), end, scratch.candidates.end(), more_likely);
  out.top.reserve(count);
  for (auto it = scratch.candidates.begin(); it != end; ++it) {
    const auto rank = static_cast<std::int32_t>(out.top.size()) + 1;
    out.top.push_back({.token = it->token, .logprob = logprob(it->logit), .rank = rank});
  }
  return out;
}

}  // namespace

bool reads_no_logit(std::span<const TokenId> suppressed, const AllowedTokens& allowed) {
  return allowed.only() != kNoToken && std::ranges::find(suppressed, allowed.only()) == suppressed.end();
}

bool reads_argmax_only(const SamplingParams& params, std::span<const TokenId> suppressed) {
  return is_greedy(params) && !params.logprobs && !changes_logits(params, suppressed);
}

PositionLogprobs certain_logprobs(TokenId token, std::int32_t num_top) {
  PositionLogprobs out;
  out.chosen = {.token = token, .logprob = 0.0f, .rank = 1};
  if (num_top > 0) out.top.push_back(out.chosen);
  return out;
}

Result<SampleOutput> sample(const SampleInput& input, SamplerScratch& scratch) {
  if (reads_no_logit(input.suppressed, input.allowed)) {
    SampleOutput certain{.token = input.allowed.only(), .logprobs = {}};
    if (input.guess_distribution != nullptr) input.guess_distribution->assign_certain(certain.token);
    if (input.params.logprobs) certain.logprobs = certain_logprobs(certain.token, *input.params.logprobs);
    return certain;
  }
  apply_logit_bias(input.logits, input.params.logit_bias);
  suppress_tokens(input.logits, input.suppressed);
  apply_penalties(input.logits, input.params, input.prompt, input.generated, scratch.counts);
  const bool changed = changes_logits(input.params, input.suppressed);
  const std::span<const float> maxima = changed ? std::span<const float>() : input.tile_maxima;
  if (input.allowed.are_all()) {
    scratch.row.assign(input.logits, maxima);
  } else {
    scratch.row.assign_allowed(input.logits, input.allowed.words(), maxima);
  }
  KVASIR_CHECKED(check_row(scratch.row));
  SampleOutput output;
  output.token = is_greedy(input.params) ? scratch.row.argmax() : draw_token(input, scratch);
  if (input.params.logprobs) {
    const float least = input.allowed.are_all() ? -kInfinity : kLeastPossible;
    output.logprobs = logprobs_of_row(output.token, *input.params.logprobs, least, scratch);
  }
  return output;
}

Result<PositionLogprobs> logprobs_of(std::span<const float> logits, TokenId token, std::int32_t num_top,
                                     SamplerScratch& scratch) {
  scratch.row.assign(logits);
  KVASIR_CHECKED(check_row(scratch.row));
  return logprobs_of_row(token, num_top, -kInfinity, scratch);
}

}  // namespace kvasir::sampling
