#include "journal/block_lifetimes.h"

#include <algorithm>
#include <tuple>

namespace kvasir::journal {
namespace {

std::uint64_t key_of(const kv::ActionRecord& action) {
  return (std::uint64_t{action.group} << 56) | (static_cast<std::uint64_t>(action.cell) << 32) |
         static_cast<std::uint32_t>(action.block);
}

}  // namespace

std::optional<float> realised_attention(const BlockLifetime& lifetime, const kv::SequenceEnd& end) {
  const auto group = static_cast<std::size_t>(lifetime.group);
  if (lifetime.format == kv::KvFormat::kGone || group >= end.scores.size()) return std::nullopt;
  const kv::SequenceScores& scores = end.scores[group];
  const kv::AttentionMemory& memory = scores.memory();
  const std::int32_t num_queries = end.num_computed_tokens - lifetime.last_token;
  if (!memory.is_kept || memory.window_queries > 0 || num_queries <= 0) return std::nullopt;
  if (lifetime.cell >= scores.num_cells() || lifetime.block >= scores.num_blocks()) return std::nullopt;
  const float score = scores.scores(lifetime.cell)[static_cast<std::size_t>(lifetime.block)];
  const float since = score - memory.kept_share(num_queries) * lifetime.score;
  return std::max(0.0f, since) / memory.weight_of(num_queries);  // rounding may leave less than nothing
}

void BlockLifetimes::add(const kv::StepRecord& step) {
  for (const kv::ActionRecord& action : step.actions) {
    BlockLifetime& lifetime = by_cell_[key_of(action)];
    if (lifetime.num_changes++ == 0) {
      lifetime.group = action.group;
      lifetime.cell = action.cell;
      lifetime.block = action.block;
      lifetime.first_token = step.num_computed_tokens;
      lifetime.from = action.from;
    }
    lifetime.last_token = step.num_computed_tokens;
    lifetime.format = action.to;
    lifetime.forecast = action.forecast;
    lifetime.score = action.score;
  }
}

std::vector<BlockLifetime> BlockLifetimes::ordered() const {
  std::vector<BlockLifetime> all;
  all.reserve(by_cell_.size());
  for (const auto& [key, lifetime] : by_cell_) all.push_back(lifetime);
  std::ranges::sort(all, {}, [](const BlockLifetime& l) { return std::tuple(l.group, l.cell, l.block); });
  return all;
}

}  // namespace kvasir::journal
