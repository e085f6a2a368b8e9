// Dropping blocks in f16 and nothing else: what the literature does, for comparison.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kv/policy/registry.h"

namespace kvasir::kv {
namespace {

enum class Score : std::uint8_t {
  kAge,        // the newest is worth the most
  kLot,        // drawn once per block and cell
  kMass,       // remembered attention
  kStatistic,  // the measured statistic of the block
};

constexpr ActionReason reason_of(Score score) {
  constexpr std::array kReasons = {ActionReason::kOldest, ActionReason::kLot, ActionReason::kLeastAttention,
                                   ActionReason::kLeastStatistic};
  return kReasons[static_cast<std::size_t>(score)];
}

struct DropRule {
  std::string_view name;
  Score score = Score::kAge;
  AttentionMemory memory = {};
  std::int32_t num_sink_blocks = kNumSinkBlocks;
  std::int32_t num_grace_blocks = kNumGraceBlocks;
  float recent_share = 0.0f;  // of the blocks that stay, which are the newest whatever their score is
  bool keeps_prompt = false;
};

constexpr AttentionMemory memory_of(float decay, std::int32_t window_queries = 0) {
  return {.is_kept = true, .decay = decay, .window_queries = window_queries};
}
constexpr AttentionMemory measuring(CellStatistic statistic) { return {.statistic = statistic}; }

constexpr std::array kRules = {
    DropRule{.name = "window", .num_sink_blocks = 0},
    // StreamingLLM (Xiao et al. 2024).
    DropRule{.name = "sinks"},
    DropRule{.name = "random", .score = Score::kLot},
    DropRule{.name = "random-prompt", .score = Score::kLot, .keeps_prompt = true},
    // Heavy hitters as published: half of what stays is recent, attention adds up for ever (Zhang et al.
    // 2023).
    DropRule{.name = "h2o",
             .score = Score::kMass,
             .memory = memory_of(1.0f),
             .num_sink_blocks = 0,
             .num_grace_blocks = 0,
             .recent_share = 0.5f},
    DropRule{.name = "h2o-decay", .score = Score::kMass, .memory = memory_of(0.98f)},
    // The attention of the last query alone (Oren et al. 2024), by block.
    DropRule{.name = "tova", .score = Score::kMass, .memory = memory_of(1.0f, 1)},
    // The last 32 queries (Li et al. 2024).
    DropRule{.name = "snapkv", .score = Score::kMass, .memory = memory_of(1.0f, 32)},
    DropRule{.name = "mass", .score = Score::kMass, .memory = memory_of(0.995f)},
    DropRule{
        .name = "keydiff", .score = Score::kStatistic, .memory = measuring(CellStatistic::kDistinctness)},
    DropRule{.name = "paged", .score = Score::kStatistic, .memory = measuring(CellStatistic::kValueKeyRatio)},
};

// A number in [0, 1) that only depends on its place (SplitMix64, Steele et al. 2014).
float lot(std::uint64_t seed, std::int32_t cell, std::int32_t block) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15u * ((static_cast<std::uint64_t>(cell) << 32) +
                                                  static_cast<std::uint64_t>(block) + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<float>((x ^ (x >> 31)) >> 40) * 0x1p-24f;
}

class DropPolicy final : public KvPolicy {
 public:
  constexpr explicit DropPolicy(const DropRule& rule) : rule_(rule) {}
  std::string_view name() const override { return rule_.name; }
  AttentionMemory memory() const override { return rule_.memory; }

  void plan(const PolicyView& view, std::vector<CellAction>& actions) const override {
    std::vector<Candidate> candidates;
    for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) plan_cell(view, cell, candidates, actions);
  }

 private:
  struct Candidate {
    float score;
    std::int32_t block;
  };
  // Among equals the older one.
  static bool goes_first(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score < b.score : a.block < b.block;
  }

  void plan_cell(const PolicyView& view, std::int32_t cell, std::vector<Candidate>& candidates,
                 std::vector<CellAction>& actions) const {
    std::int64_t excess = view.present_bytes(cell) - view.allowed_bytes();
    if (excess <= 0) return;
    candidates.clear();
    const std::int64_t kept_blocks =
        std::max<std::int64_t>(0, view.allowed_bytes()) / view.new_cell_bytes();
    const auto num_recent = static_cast<std::int32_t>(rule_.recent_share * static_cast<float>(kept_blocks));
    const std::int32_t end =
        std::min(view.num_full_blocks - rule_.num_grace_blocks, view.num_blocks() - num_recent);
    const std::int32_t begin =
        std::max(rule_.num_sink_blocks, rule_.keeps_prompt ? view.num_prompt_blocks : 0);
    for (std::int32_t b = begin; b < end; ++b) {
      if (view.format(b, cell) != KvFormat::kGone) candidates.push_back({score(view, cell, b), b});
    }
    std::ranges::sort(candidates, goes_first);
    for (const Candidate& candidate : candidates) {
      if (excess <= 0) return;
      excess -= view.bytes(view.format(candidate.block, cell));
      actions.push_back(
          {candidate.block, cell, KvFormat::kGone, reason_of(rule_.score), forecast(view, candidate)});
    }
  }

  // A memory of every query expects the same of the next ones; a window forgets too fast for that.
  float forecast(const PolicyView& view, const Candidate& candidate) const {
    if (rule_.score != Score::kMass || rule_.memory.window_queries > 0) return kNoForecast;
    return candidate.score / rule_.memory.weight_of(view.num_later_queries(candidate.block));
  }

  float score(const PolicyView& view, std::int32_t cell, std::int32_t block) const {
    const auto at = [&](std::span<const float> values) {
      const auto index = static_cast<std::size_t>(block);
      return index < values.size() ? values[index] : 0.0f;
    };
    switch (rule_.score) {
      case Score::kAge:
        return static_cast<float>(block);
      case Score::kLot:
        return lot(view.settings.seed, cell, block);
      case Score::kMass:
        return at(view.scores->scores(cell));
      case Score::kStatistic:
        return at(view.scores->statistics(cell));
    }
    return 0.0f;
  }

  const DropRule rule_;
};

template <std::size_t... kIndex>
std::array<DropPolicy, sizeof...(kIndex)> make_policies(std::index_sequence<kIndex...>) {
  return {DropPolicy(kRules[kIndex])...};
}

}  // namespace

std::span<const KvPolicy* const> drop_policies() {
  static const auto policies = make_policies(std::make_index_sequence<kRules.size()>());
  static const auto pointers = [] {
    std::array<const KvPolicy*, kRules.size()> all;
    std::ranges::transform(policies, all.begin(), [](const DropPolicy& policy) { return &policy; });
    return all;
  }();
  return pointers;
}

}  // namespace kvasir::kv
