#include "kv/policy/demotion.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kv/policy/served_forecast.h"

namespace kvasir::kv {
namespace {

// The coarsest format that is too coarse for neither of two holders that want `a` and `b`.
KvFormat finest_of(KvFormat a, KvFormat b) {
  const auto suits = [](KvFormat format, KvFormat wanted) {
    return format == wanted || is_coarser(wanted, format);
  };
  if (suits(a, b)) return a;
  int format = kNumKvFormats - 1;
  while (!suits(static_cast<KvFormat>(format), a) || !suits(static_cast<KvFormat>(format), b)) --format;
  return static_cast<KvFormat>(format);
}

// The whole prompt's budget is there for its beginning, which stays fine as long as there is room.
std::int32_t budget_blocks(const KvPolicySettings& policy, std::int32_t num_prompt_tokens) {
  return policy.is_share_of_present ? 0 : blocks_for(num_prompt_tokens);
}

}  // namespace

Demotion::Demotion(const KvCacheConfig& config, BlockStore& blocks, PolicyRecorder& recorder)
    : config_(config), blocks_(blocks), recorder_(recorder), num_full_cells_(config.num_full_cells()) {}

void Demotion::end() {
  cells().end_demotions();
  for (const auto& [group, block] : copied_) blocks_.release(group, block);
  copied_.clear();
  recorder_.hand_over();
}

void Demotion::demote(SequenceKv& kv, std::int32_t num_computed_tokens, std::int32_t num_prompt_tokens) {
  const std::int32_t num_full_blocks = num_computed_tokens / kTokensPerBlock;
  if (!kv.policy.is_lossy() || kv.is_frozen || num_full_blocks == kv.num_planned_blocks) return;
  if (kv.policy.only_at_tokens > 0 && num_computed_tokens != kv.policy.only_at_tokens) return;
  kv.num_planned_blocks = num_full_blocks;
  recorder_.begin_step(kv, num_computed_tokens);
  const double share_before = measure(kv, num_prompt_tokens).share();
  std::int32_t first_cell = 0;  // of the group, among those of all groups without a window
  for (std::int32_t g = 0; g < config_.num_groups(); ++g) {
    if (!config_.group(g).is_full()) continue;  // blocks that leave a window go by themselves
    PolicyView view = view_of(kv, g, kv.table(g).blocks(), num_full_blocks, num_prompt_tokens);
    view.num_computed_tokens = num_computed_tokens;
    demote_group(kv, g, first_cell, view);
    first_cell += cells().cells_per_block(g);
  }
  kv.bytes_use.add(share_before, measure(kv, num_prompt_tokens));
  recorder_.end_step(kv, share_before, kv.bytes_use.last_share());
}

void Demotion::freeze(SequenceKv& kv) {
  kv.is_frozen = true;
  kv.pending_demotions.clear();
}

PolicyView Demotion::view_of(const SequenceKv& kv, std::int32_t group, std::span<const BlockId> blocks,
                             std::int32_t num_full_blocks, std::int32_t num_prompt_tokens) const {
  std::int64_t bytes_per_cell = kv.policy.budget_bytes / std::max<std::int64_t>(1, num_full_cells_);
  if (kv.policy.budget_bytes > 0)
    bytes_per_cell = std::max<std::int64_t>(1, bytes_per_cell);  // 0 is no limit
  return {.cells = cells(),
          .settings = kv.policy,
          .costs = config_.format_costs,
          .group = group,
          .budget_bytes_per_cell = bytes_per_cell,
          .blocks = blocks,
          .num_full_blocks = num_full_blocks,
          .num_prompt_blocks = std::min(num_full_blocks, num_prompt_tokens / kTokensPerBlock),
          .num_budget_blocks = budget_blocks(kv.policy, num_prompt_tokens),
          .scores = kv.scores.empty() ? nullptr : &kv.scores[static_cast<std::size_t>(group)],
          .cell_weights = config_.group(group).cell_weights,
          .network = kv.policy.forecast != nullptr ? kv.policy.forecast->of(group) : config_.group(group).network.get()};
}

bool Demotion::may_act_on(const SequenceKv& kv, std::int32_t num_full_blocks) const {
  if (!kv.policy.policy->has_budget()) return true;
  const std::vector<BlockId> any_blocks(static_cast<std::size_t>(num_full_blocks), kHole);
  for (std::int32_t g = 0; g < config_.num_groups(); ++g) {
    if (!config_.group(g).is_full()) continue;
    const PolicyView view = view_of(kv, g, any_blocks, num_full_blocks, kv.num_prompt_tokens);
    if (num_full_blocks * view.new_cell_bytes() > view.allowed_bytes()) return true;
  }
  return false;
}

void Demotion::demote_group(SequenceKv& kv, std::int32_t group, std::int32_t first_cell,
                            const PolicyView& view) {
  // Pending demotions of shared blocks are planned anew where the other holders have left.
  std::erase_if(kv.pending_demotions, [&](const auto& wish) {
    const auto [of_group, block] = wish.first;
    return of_group == group && blocks_.pool(group).ref_count(block) == 1;
  });
  actions_.clear();
  kv.policy.policy->plan(view, actions_);
  if (const CellRange only = kv.policy.only_cells; only.begin < only.end) {
    std::erase_if(actions_, [&](const CellAction& action) {
      return action.cell + first_cell < only.begin || action.cell + first_cell >= only.end;
    });
  }
  // Block by block, as cells came into memory, so that whole pages run empty for the rounds that follow.
  std::ranges::sort(actions_, {},
                    [](const CellAction& action) { return std::pair(action.block, action.cell); });
  // A format without room may have some once other cells have their new places, or once the remaining cells
  // have moved together; caches go last.
  while (!actions_.empty() && !copy_borrowed(kv, group)) {
    if (cells().gather() || blocks_.evict_from_fullest()) continue;
    give_up_copies(group);
    return recorder_.ran_out_of_room();
  }
  if (!copies_.empty()) use_copies(kv, group);
  while (!actions_.empty()) {
    const std::size_t num_before = actions_.size();
    std::erase_if(actions_, [&](const CellAction& action) { return carry_out(kv, group, view, action); });
    if (actions_.size() == num_before && !cells().gather() && !blocks_.evict_from_fullest()) break;
  }
  if (!actions_.empty()) recorder_.ran_out_of_room();  // the next plan goes on
}

// Goes on with copies of the borrowed blocks, as the actions want their cells to be; false when there is no room.
bool Demotion::copy_borrowed(SequenceKv& kv, std::int32_t group) {
  const std::span<const std::int32_t> borrowed = kv.borrowed_blocks(group);
  while (copies_.size() < borrowed.size()) {
    const std::int32_t logical_block = borrowed[copies_.size()];
    const BlockId original = kv.table(group)[logical_block];
    formats_.clear();
    for (std::int32_t cell = 0; cell < cells().cells_per_block(group); ++cell) {
      formats_.push_back(cells().at(group, original, cell).format());
    }
    for (const CellAction& action : std::ranges::equal_range(actions_, logical_block, {}, &CellAction::block)) {
      formats_[static_cast<std::size_t>(action.cell)] = action.to;
    }
    if (!blocks_.make_empty(group)) return false;
    const BlockId copy = blocks_.take(kv.owner, group);
    if (!cells().copy_as(group, original, copy, logical_block, formats_)) {
      blocks_.release(group, copy);
      return false;
    }
    copies_.push_back(copy);
  }
  return true;
}

void Demotion::give_up_copies(std::int32_t group) {
  for (const BlockId copy : copies_) blocks_.release(group, copy);
  copies_.clear();
}

// The copies take the places of the borrowed blocks, which go the last one first, so that heads outlive their tails.
void Demotion::use_copies(SequenceKv& kv, std::int32_t group) {
  std::vector<std::int32_t>& borrowed = kv.borrowed[static_cast<std::size_t>(group)];
  for (std::size_t i = copies_.size(); i-- > 0;) {
    const BlockId original = kv.table(group)[borrowed[i]];
    for (const CellAction& action : std::ranges::equal_range(actions_, borrowed[i], {}, &CellAction::block)) {
      recorder_.add(kv, group, action, cells().at(group, original, action.cell).format());
      if (kv.scores.empty() || action.to != KvFormat::kGone) continue;
      kv.scores[static_cast<std::size_t>(group)].freeze(action.cell, action.block);
    }
    kv.table(group).replace(borrowed[i], copies_[i]);
    copied_.emplace_back(group, original);
  }
  std::erase_if(actions_, [&](const CellAction& action) { return std::ranges::binary_search(borrowed, action.block); });
  borrowed.clear();
  copies_.clear();
}

// Whether the action needs no further try: it is done, or wished for.
bool Demotion::carry_out(SequenceKv& kv, std::int32_t group, const PolicyView& view,
                         const CellAction& action) {
  const BlockId block = view.blocks[static_cast<std::size_t>(action.block)];
  const KvFormat from = cells().at(group, block, action.cell).format();
  if (blocks_.pool(group).ref_count(block) > 1) {
    postpone(kv, group, block, action);
    recorder_.add_waiting();
    return true;
  }
  if (!make_coarser(group, block, action.block, action.cell, action.to)) return false;
  recorder_.add(kv, group, action, from);
  if (action.to == KvFormat::kGone && !kv.scores.empty()) {
    kv.scores[static_cast<std::size_t>(group)].freeze(action.cell, action.block);
  }
  return true;
}

// Drops, or makes coarser unless it is so already; false when there is no room.
bool Demotion::make_coarser(std::int32_t group, BlockId block, std::int32_t logical_block, std::int32_t cell, KvFormat to) {
  const KvFormat present = cells().at(group, block, cell).format();
  if (!is_coarser(to, present)) return true;
  if (to == KvFormat::kGone) {
    cells().drop(group, block, cell);
    return true;
  }
  return cells().demote(group, block, cell, to, logical_block);
}

void Demotion::postpone(SequenceKv& kv, std::int32_t group, BlockId block, const CellAction& action) {
  PendingDemotion& pending = kv.pending_demotions[{group, block}];
  pending.logical_block = action.block;
  pending.cells.resize(static_cast<std::size_t>(cells().cells_per_block(group)), {.to = config_.new_cells});
  CellAction& wished = pending.cells[static_cast<std::size_t>(action.cell)];
  if (is_coarser(action.to, wished.to)) wished = action;
}

void Demotion::demote_shared(std::span<SequenceKv* const> holders) {
  struct Agreement {
    std::int32_t num_holders = 0;
    std::int32_t logical_block = 0;  // the same of all
    std::vector<KvFormat> finest;
  };
  std::map<std::pair<std::int32_t, BlockId>, Agreement> agreements;
  for (const SequenceKv* kv : holders) {
    for (const auto& [key, wish] : kv->pending_demotions) {
      Agreement& agreement = agreements[key];
      agreement.logical_block = wish.logical_block;
      if (agreement.num_holders++ == 0) agreement.finest.assign(wish.cells.size(), KvFormat::kGone);
      for (std::size_t cell = 0; cell < wish.cells.size(); ++cell) {
        agreement.finest[cell] = finest_of(agreement.finest[cell], wish.cells[cell].to);
      }
    }
  }
  for (const auto& [key, agreement] : agreements) {
    const auto [group, block] = key;
    if (agreement.num_holders < blocks_.pool(group).ref_count(block)) continue;
    if (!apply_agreed(group, block, agreement.logical_block, agreement.finest, holders)) return;
    for (SequenceKv* kv : holders) kv->pending_demotions.erase(key);
  }
}

// Makes the cells of a block as coarse as all its holders agreed; false when there is no room.
bool Demotion::apply_agreed(std::int32_t group, BlockId block, std::int32_t logical_block, std::span<const KvFormat> formats,
                            std::span<SequenceKv* const> holders) {
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const auto cell = static_cast<std::int32_t>(i);
    const KvFormat from = cells().at(group, block, cell).format(), to = formats[i];
    if (!is_coarser(to, from)) continue;
    while (!make_coarser(group, block, logical_block, cell, to)) {
      if (!cells().gather() && !blocks_.evict_from_fullest()) return false;
    }
    for (SequenceKv* kv : holders) {
      const auto wish = kv->pending_demotions.find({group, block});
      if (wish == kv->pending_demotions.end()) continue;
      recorder_.add_shared(*kv, group, wish->second.cells[i], from, to);
      if (kv->scores.empty() || to != KvFormat::kGone) continue;
      kv->scores[static_cast<std::size_t>(group)].freeze(cell, wish->second.logical_block);
    }
  }
  return true;
}

KvUsage Demotion::measure(const SequenceKv& kv, std::int32_t num_prompt_tokens) const {
  const std::int32_t num_budget_blocks = budget_blocks(kv.policy, num_prompt_tokens);
  KvUsage use;
  std::int64_t num_budget_cells = 0;
  for (std::int32_t g = 0; g < config_.num_groups(); ++g) {
    if (!config_.group(g).is_full()) continue;
    const std::int32_t num_cells = cells().cells_per_block(g);
    for (const BlockId block : kv.table(g).blocks()) {
      use.bytes += cells().bytes(g, block);
      use.num_cells += num_cells;
      for (std::int32_t cell = 0; cell < num_cells; ++cell) {
        if (cells().at(g, block, cell).is_gone()) ++use.num_dropped_cells;
      }
    }
    num_budget_cells += std::max(kv.table(g).size(), num_budget_blocks) * num_cells;
  }
  if (use.num_cells == 0) return {};
  use.bytes += use.num_cells * kBookkeepingBytesPerCell;
  use.full_bytes = num_budget_cells * cell_bytes(KvFormat::kF16, config_.full_head_dim());
  return use;
}

}  // namespace kvasir::kv
