#include "eval/kv_text.h"

#include <utility>

#include "eval/log_softmax.h"
#include "eval/scoring.h"

namespace kvasir::eval {
namespace {

// Which positions' logits are looked at: the n-th scored one for every n that is a multiple of the stride.
bool is_sampled(const KvProtocol& protocol, std::int32_t position, std::int32_t first_scored) {
  return position >= first_scored && (position - first_scored) % protocol.logit_stride == 0;
}

double mean_nll(std::span<const float> logprobs, std::int32_t first_token) {
  double sum = 0.0;
  for (std::size_t t = static_cast<std::size_t>(first_token); t < logprobs.size(); ++t) sum -= logprobs[t];
  return sum / static_cast<double>(std::ssize(logprobs) - first_token);
}

}  // namespace

std::int32_t KvProtocol::first_scored(std::int32_t ctx_tokens) const {
  return num_scored_tokens > 0 ? ctx_tokens - num_scored_tokens : kKvStepTokens;
}

Result<FullCacheScore> score_full_cache(Engine& engine, const KvProtocol& protocol,
                                        std::span<const TokenId> window, const KeepGoing& keep_going) {
  FullCacheScore full;
  const std::int32_t first = protocol.first_scored(static_cast<std::int32_t>(window.size()));
  const auto observe = [&](std::int32_t position, std::span<const float> logits) {
    if (is_sampled(protocol, position, first)) full.log_softmax.push_back(log_softmax(logits));
  };
  KVASIR_TRY(PromptScore score,
             score_prompt(engine, {window.begin(), window.end()}, {}, observe, keep_going));
  full.logprobs = std::move(score.logprobs);
  return full;
}

Result<KvRow> measure_kv_policy(Engine& engine, const KvProtocol& protocol, std::span<const TokenId> window,
                                const FullCacheScore& full, KvParams kv, const KeepGoing& keep_going) {
  const auto ctx = static_cast<std::int32_t>(window.size());
  const std::int32_t first = protocol.first_scored(ctx);
  if (protocol.num_scored_tokens > 0) kv.only_at_tokens = first;
  KvRow row;
  std::size_t num_sampled = 0;
  const auto observe = [&](std::int32_t position, std::span<const float> logits) {
    if (!is_sampled(protocol, position, first)) return;
    const std::vector<float> here = log_softmax(logits);
    const std::vector<float>& there = full.log_softmax[num_sampled++];
    row.kl += divergence(there, here);
    row.top1 += have_same_top(here, there) ? 1.0 : 0.0;
  };
  KVASIR_TRY(const PromptScore score,
             score_prompt(engine, {window.begin(), window.end()}, kv, observe, keep_going));
  row.suite = protocol.suite;
  row.ctx_tokens = ctx;
  row.policy = kv.policy;
  row.budget = kv.budget;
  row.bytes_share = score.kv_bytes_share;
  row.bytes_share_peak = score.kv_bytes_share_peak;
  row.num_tokens = ctx - first - 1;
  row.nll = mean_nll(score.logprobs, first + 1);  // of tokens that a scored position predicts
  row.full_nll = mean_nll(full.logprobs, first + 1);
  row.kl /= static_cast<double>(num_sampled);
  row.top1 /= static_cast<double>(num_sampled);
  return row;
}

}  // namespace kvasir::eval
