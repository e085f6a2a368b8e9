#include "learn/shadow_watch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "learn/added_attention.h"
#include "learn/forecast_rows.h"

namespace kvasir::learn {
namespace {

constexpr std::int32_t kHorizonQueries = kHorizonBlocks * kv::kTokensPerBlock;
// A longer step's attention hides that one query asked.
constexpr std::int32_t kMaxQueriesToTell = 2 * kv::kTokensPerBlock;

std::int32_t computed_tokens(const kv::PolicyView& view) {
  return std::max(view.num_computed_tokens, view.num_full_blocks * kv::kTokensPerBlock);
}

// Without a block that is not full; 0 where nothing is known yet.
void append_full(std::span<const float> of_cell, std::int32_t num_full_blocks, std::vector<float>& all) {
  for (std::size_t b = 0; b < static_cast<std::size_t>(num_full_blocks); ++b) all.push_back(b < of_cell.size() ? of_cell[b] : 0.0f);
}

}  // namespace

ShadowWatch::~ShadowWatch() {
  if (done_.empty() || !deliver_) return;
  ShadowSequence sequence;
  for (auto& [group, act] : done_) sequence.push_back(std::move(act));
  deliver_(std::move(sequence));
}

void ShadowWatch::plan(const kv::PolicyView& view, std::vector<kv::CellAction>& /*actions*/) const {
  Group& group = groups_[view.group];
  const std::int32_t num_computed = computed_tokens(view);
  if (num_computed <= group.num_computed_tokens) group = {};  // it was preempted
  see(view, group, num_computed - group.num_computed_tokens);
  group.num_computed_tokens = num_computed;
  const bool fits = std::int64_t{view.num_full_blocks} * view.num_cells() * ShadowAct::kBytesPerCell <= kMaxBytes;
  if (view.num_full_blocks < group.next_mark || !fits) return;
  note(view, group);
  group.next_mark = view.num_full_blocks + std::max(kFirstMark, view.num_full_blocks / 2);
}

void ShadowWatch::see(const kv::PolicyView& view, Group& group, std::int32_t num_queries) const {
  group.before.resize(static_cast<std::size_t>(view.num_cells()));
  std::vector<float> of_step;
  const AddedAttention added(num_queries);
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    const std::span<const float> now = view.scores->scores(cell);
    std::vector<float>& before = group.before[static_cast<std::size_t>(cell)];
    of_step.resize(now.size());
    for (std::size_t b = 0; b < now.size(); ++b) of_step[b] = added.of(now[b], b < before.size() ? before[b] : 0.0f);
    const float sum = std::accumulate(of_step.begin(), of_step.end(), 0.0f);
    for (Noted& noted : group.noted) {
      ShadowAct& act = noted.act;
      for (std::int32_t b = 0; b < std::min(act.num_blocks, static_cast<std::int32_t>(now.size())); ++b) {
        const float attention = of_step[static_cast<std::size_t>(b)];
        act.later[act.at(cell, b)] += attention;
        if (act.greatest_share.empty() || sum <= 0.0f) continue;
        float& share = act.greatest_share[act.at(cell, b)];
        share = std::max(share, attention / sum);
      }
    }
    before.assign(now.begin(), now.end());
  }
  for (Noted& noted : group.noted) {
    noted.num_queries += num_queries;
    if (num_queries > kMaxQueriesToTell) noted.act.greatest_share.clear();
    if (noted.num_queries < kHorizonQueries) continue;
    const float per_horizon = static_cast<float>(kHorizonQueries) / static_cast<float>(noted.num_queries);
    for (float& attention : noted.act.later) attention *= per_horizon;
    done_[view.group] = std::move(noted.act);
  }
  std::erase_if(group.noted, [](const Noted& noted) { return noted.num_queries >= kHorizonQueries; });
}

void ShadowWatch::note(const kv::PolicyView& view, Group& group) const {
  const std::size_t size = static_cast<std::size_t>(view.num_cells()) * static_cast<std::size_t>(view.num_full_blocks);
  std::vector<float> scores, statistics;
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    append_full(view.scores->scores(cell), view.num_full_blocks, scores);
    append_full(view.scores->statistics(cell), view.num_full_blocks, statistics);
  }
  group.noted.push_back({.act = {.group = view.group,
                                 .num_blocks = view.num_full_blocks,
                                 .scores = {view.scores->memory(), view.num_cells(), std::move(scores), std::move(statistics)},
                                 .later = std::vector<float>(size, 0.0f),
                                 .greatest_share = std::vector<float>(size, 0.0f)}});
}

}  // namespace kvasir::learn
