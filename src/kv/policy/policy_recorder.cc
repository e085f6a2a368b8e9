#include "kv/policy/policy_recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvasir::kv {
namespace {

ActionRecord record_of(const SequenceKv& kv, std::int32_t group, const CellAction& action, KvFormat from) {
  ActionRecord record{.block = action.block,
                      .cell = action.cell,
                      .forecast = action.forecast,
                      .group = static_cast<std::uint8_t>(group),
                      .from = from,
                      .to = action.to,
                      .reason = action.reason};
  if (kv.scores.empty()) return record;
  const auto scores = kv.scores[static_cast<std::size_t>(group)].scores(action.cell);
  const auto block = static_cast<std::size_t>(action.block);
  if (block < scores.size()) record.score = std::abs(scores[block]);  // negative once the cell is gone
  return record;
}

void measure_loss(const SequenceKv& kv, StepRecord& step) {
  float max = 0.0f, sum = 0.0f;
  std::int32_t num_cells = 0;
  for (const SequenceScores& scores : kv.scores) {
    if (!scores.memory().is_kept) return;
    for (std::int32_t cell = 0; cell < scores.num_cells(); ++cell, ++num_cells) {
      const float share = scores.lost_share(cell);
      max = std::max(max, share);
      sum += share;
    }
  }
  if (num_cells == 0) return;
  step.lost_share_max = max;
  step.lost_share_mean = sum / static_cast<float>(num_cells);
}

}  // namespace

void PolicyRecorder::begin_step(SequenceKv& kv, std::int32_t num_computed_tokens) {
  if (journal_ == nullptr) return;
  if (kv.hold == kNoHold) {
    kv.hold = HoldId{++num_holds_};
    journal_->begin_sequence({.hold = kv.hold, .holder = kv.holder, .policy = kv.policy});
  }
  steps_.push_back({.hold = kv.hold, .num_computed_tokens = num_computed_tokens});
  began_ms_ = journal_->now_ms();
}

void PolicyRecorder::add(const SequenceKv& kv, std::int32_t group, const CellAction& action, KvFormat from) {
  if (journal_ == nullptr) return;
  steps_.back().actions.push_back(record_of(kv, group, action, from));
}

void PolicyRecorder::add_waiting() {
  if (journal_ != nullptr) ++steps_.back().num_waiting;
}

void PolicyRecorder::ran_out_of_room() {
  if (journal_ != nullptr) steps_.back().ran_out_of_room = true;
}

void PolicyRecorder::end_step(const SequenceKv& kv, double bytes_share_before, double bytes_share_after) {
  if (journal_ == nullptr) return;
  StepRecord& step = steps_.back();
  const double ended_ms = journal_->now_ms();
  step.bytes_share_before = bytes_share_before;
  step.bytes_share_after = bytes_share_after;
  count_cells(kv, step);
  measure_loss(kv, step);
  step.policy_ms = static_cast<float>(ended_ms - began_ms_);
  step.record_ms = static_cast<float>(journal_->now_ms() - ended_ms);
}

void PolicyRecorder::count_cells(const SequenceKv& kv, StepRecord& step) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].is_full()) continue;
    const auto group = static_cast<std::int32_t>(g);
    for (std::int32_t cell = 0; cell < cells_.cells_per_block(group); ++cell) {
      for (const BlockId block : kv.table(group).blocks()) {
        if (block == kHole) continue;
        ++step.num_cells[static_cast<std::size_t>(cells_.at(group, block, cell).format())];
      }
    }
  }
}

void PolicyRecorder::add_shared(const SequenceKv& kv, std::int32_t group, CellAction wish, KvFormat from,
                                KvFormat to) {
  if (journal_ == nullptr) return;
  wish.to = to;
  StepRecord& step = step_of(kv);
  step.actions.push_back(record_of(kv, group, wish, from));
  step.actions.back().is_shared = true;
}

// The one that ended last, or a new one that no policy planned.
StepRecord& PolicyRecorder::step_of(const SequenceKv& kv) {
  const auto found = std::ranges::find(steps_, kv.hold, &StepRecord::hold);
  if (found != steps_.end()) return *found;
  steps_.push_back({.hold = kv.hold, .num_computed_tokens = kv.num_computed_tokens, .is_planned = false});
  return steps_.back();
}

void PolicyRecorder::hand_over() {
  if (journal_ == nullptr) return;
  for (StepRecord& step : steps_) journal_->add_step(std::move(step));
  steps_.clear();
}

void PolicyRecorder::end_sequence(SequenceKv& kv) {
  if (journal_ == nullptr || kv.hold == kNoHold) return;
  journal_->end_sequence({.hold = kv.hold,
                          .num_computed_tokens = kv.num_computed_tokens,
                          .bytes_use = kv.bytes_use,
                          .scores = std::move(kv.scores)});
}

}  // namespace kvasir::kv
