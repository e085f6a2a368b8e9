#include "engine/forced_runs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "sampling/sampler.h"
#include "sched/sequence.h"

namespace kvasir {

void ForcedRuns::extend(sched::ModelStepResult& result) {
  CHECK(result.num_tokens.size() == sequences_.size());
  const auto is_guided = [](const Guided& sequence) { return sequence.guide != nullptr; };
  if (std::ranges::none_of(sequences_, is_guided)) return;
  run_.resize(static_cast<std::size_t>(sched::kMaxForcedTokens));
  tokens_.clear();
  result.num_forced.assign(sequences_.size(), 0);
  auto sampled = result.tokens.begin();
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const std::size_t begin = tokens_.size();
    const auto end = sampled + result.num_tokens[i];
    std::move(sampled, end, std::back_inserter(tokens_));
    sampled = end;
    if (!is_guided(sequences_[i]) || result.num_tokens[i] == 0) continue;
    const std::size_t count = sequences_[i].guide->forced_behind(std::span(tokens_).subspan(begin), run_);
    for (std::size_t j = 0; j < count; ++j) {
      sched::SampledToken& forced = tokens_.emplace_back(sched::SampledToken{.token = run_[j]});
      if (sequences_[i].num_logprobs) forced.logprobs = sampling::certain_logprobs(run_[j], *sequences_[i].num_logprobs);
    }
    result.num_forced[i] = static_cast<std::int32_t>(count);
  }
  result.tokens.swap(tokens_);
}

}  // namespace kvasir
