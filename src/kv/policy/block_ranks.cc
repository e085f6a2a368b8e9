#include "kv/policy/block_ranks.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "kv/cells/sequence_scores.h"

namespace kvasir::kv {

void rank_by_distinctness(std::span<const float> distinctness, std::span<float> ranks) {
  constexpr std::size_t kNumBins = 256;
  if (distinctness.empty()) return;
  const auto [least, greatest] = std::ranges::minmax(distinctness);
  const float bins_per_unit = greatest > least ? (kNumBins - 1) / (greatest - least) : 0.0f;
  const auto bin_of = [&](float value) { return static_cast<std::size_t>((value - least) * bins_per_unit); };
  std::array<float, kNumBins> num_less_distinct = {};
  for (const float value : distinctness) num_less_distinct[bin_of(value)] += 1.0f;
  std::exclusive_scan(num_less_distinct.begin(), num_less_distinct.end(), num_less_distinct.begin(), 0.0f);
  for (std::size_t b = 0; b < distinctness.size(); ++b) {
    ranks[b] = num_less_distinct[bin_of(distinctness[b])] / static_cast<float>(distinctness.size());
  }
}

std::size_t least_massive_magnitude(std::span<const float> statistics) {
  std::array<std::size_t, 256> num_blocks_of = {};
  for (const float statistic : statistics) ++num_blocks_of[SequenceScores::value_magnitude(statistic)];
  std::size_t may_stay = std::max<std::size_t>(1, statistics.size() / 100);
  std::size_t least = num_blocks_of.size();
  while (least > 1 && num_blocks_of[least - 1] <= may_stay) may_stay -= num_blocks_of[--least];
  return least;
}

}  // namespace kvasir::kv
