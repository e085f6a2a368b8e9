#include "sim/solo_run.h"

#include <algorithm>

#include "sim/seeded_random.h"

namespace kvasir::sim {

NamespaceHash::NamespaceHash(const Workload& workload, const sched::SequenceRequest& request)
    : own(request.cache_namespace.size()) {
  for (const char c : request.cache_namespace) own = mix(own, static_cast<std::uint64_t>(c));
  for (const std::vector<TokenId>& text : workload.kv.public_prefixes) {
    const auto num_tokens = static_cast<std::int32_t>(text.size()) / kv::kTokensPerBlock *
                            kv::kTokensPerBlock;
    const auto whole = std::span(text).first(static_cast<std::size_t>(num_tokens));
    const bool begins_with_it = std::ranges::mismatch(whole, request.prompt_token_ids).in1 == whole.end();
    if (begins_with_it) num_public_tokens = std::max(num_public_tokens, num_tokens);
  }
}

std::uint64_t begin_state(std::uint64_t namespace_hash, TokenId token, std::int32_t position) {
  return mix(mix(namespace_hash, static_cast<std::uint64_t>(token)), static_cast<std::uint64_t>(position));
}

std::uint64_t fold_attended(std::uint64_t state, std::uint64_t kv) {
  return (state ^ kv) * 0x9fb21c651e98df25u + 0x165667b19e3779f9u;
}

std::uint64_t kv_of(std::uint64_t state, std::int32_t group) {
  return mix(state, static_cast<std::uint64_t>(group));
}

TokenId sample(std::uint64_t state, std::uint64_t sample_seed, std::int32_t vocab_size) {
  return static_cast<TokenId>(mix(state, sample_seed) % static_cast<std::uint64_t>(vocab_size));
}

SoloRun::SoloRun(const Workload& workload, const SimRequest& request, std::int32_t choice)
    : tokens_(request.request.prompt_token_ids) {
  const NamespaceHash name(workload, request.request);
  const sched::StopCriteria& stop = request.request.stop;
  const std::size_t num_prompt_tokens = tokens_.size();
  run(workload.kv.groups, name);
  if (stop.max_tokens == 0) return;
  for (;;) {
    tokens_.push_back(sample(states_.back(), request.sample_seed + static_cast<std::uint64_t>(choice),
                             workload.vocab_size));
    if (const auto reason = stopped(stop, num_prompt_tokens)) {
      finish_reason_ = *reason;
      return;
    }
    run(workload.kv.groups, name);
  }
}

void SoloRun::run(std::span<const kv::LayerGroup> groups, const NamespaceHash& hash) {
  for (auto position = static_cast<std::int32_t>(states_.size()); position < std::ssize(tokens_);
       ++position) {
    std::uint64_t state = begin_state(hash.at(position), tokens_[static_cast<std::size_t>(position)],
                                      position);
    for (std::int32_t g = 0; g < std::ssize(groups); ++g) {
      const std::int32_t window = groups[static_cast<std::size_t>(g)].window_tokens;
      const std::int32_t first = window == 0 ? 0 : std::max(0, position - window + 1);
      for (std::int32_t key = first; key < position; ++key)
        state = fold_attended(state, kv_of(state_at(key), g));
      state = fold_attended(state, kNextGroup);
    }
    states_.push_back(state);
  }
}

// Written apart from sched/stop_checker.h, which it checks.
std::optional<FinishReason> SoloRun::stopped(const sched::StopCriteria& stop,
                                             std::size_t num_prompt_tokens) const {
  const auto num_generated = static_cast<std::int32_t>(tokens_.size() - num_prompt_tokens);
  const TokenId newest = tokens_.back();
  if (num_generated >= stop.min_tokens) {
    if (std::ranges::count(stop.eos_token_ids, newest) > 0) return FinishReason::kStop;
    if (std::ranges::count(stop.stop_token_ids, newest) > 0) return FinishReason::kStop;
  }
  if (num_generated == stop.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

}  // namespace kvasir::sim
