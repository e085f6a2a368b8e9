#include "kv/cells/sequence_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/portable_power.h"

namespace kvasir::kv {
namespace {

// Rows of `capacity` moved to rows of `wider`.
void widen_rows(std::vector<float>& values, std::size_t num_rows, std::size_t capacity, std::size_t wider) {
  std::vector<float> widened(num_rows * wider);
  for (std::size_t row = 0; row < num_rows; ++row) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(row * capacity), capacity,
                widened.begin() + static_cast<std::ptrdiff_t>(row * wider));
  }
  values = std::move(widened);
}

}  // namespace

float AttentionMemory::kept_share(std::int32_t num_queries) const {
  const auto n = static_cast<float>(num_queries);
  const auto decayed = static_cast<float>(portable_power(decay, num_queries));
  if (window_queries == 0) return decayed;
  return decayed * std::max(0.0f, 1.0f - n / static_cast<float>(window_queries));
}

float AttentionMemory::weight_of(std::int32_t num_queries) const {
  CHECK(window_queries == 0);
  const auto n = static_cast<float>(num_queries);
  return decay == 1.0f ? n : (1.0f - static_cast<float>(portable_power(decay, num_queries))) / (1.0f - decay);
}

SequenceScores::SequenceScores(const AttentionMemory& memory, std::int32_t num_cells, std::vector<float> scores,
                               std::vector<float> statistics)
    : memory_(memory), num_cells_(num_cells), scores_(std::move(scores)), statistics_(std::move(statistics)) {
  CHECK(num_cells > 0 && scores_.size() == statistics_.size() && scores_.size() % static_cast<std::size_t>(num_cells) == 0);
  num_blocks_ = num_measured_blocks_ = capacity_ = static_cast<std::int32_t>(scores_.size()) / num_cells;
}

SequenceScores::SequenceScores(const AttentionMemory& memory, std::int32_t num_cells, std::int32_t head_dim,
                               std::int32_t expected_blocks)
    : memory_(memory), num_cells_(num_cells) {
  reserve(std::max(1, expected_blocks));
  if (memory.statistic == CellStatistic::kDistinctness) {
    key_sums_.resize(static_cast<std::size_t>(num_cells) * static_cast<std::size_t>(head_dim));
  }
}

SequenceScores SequenceScores::with_room_for(std::int32_t num_blocks) const {
  SequenceScores other = *this;
  other.capacity_ = std::max({num_blocks, num_blocks_, 1});
  const auto copy_rows = [&](std::vector<float>& to, const std::vector<float>& from) {
    to.assign(static_cast<std::size_t>(num_cells_) * static_cast<std::size_t>(other.capacity_), 0.0f);
    for (std::int32_t cell = 0; cell < num_cells_; ++cell) {
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(index(cell, 0)), num_blocks_,
                  to.begin() + static_cast<std::ptrdiff_t>(other.index(cell, 0)));
    }
  };
  copy_rows(other.scores_, scores_);
  copy_rows(other.statistics_, statistics_);
  return other;
}

void SequenceScores::reserve(std::int32_t num_blocks) {
  if (num_blocks <= capacity_) return;
  const std::int32_t wider = std::max(num_blocks, 2 * capacity_);
  for (std::vector<float>* values : {&scores_, &statistics_}) {
    widen_rows(*values, static_cast<std::size_t>(num_cells_), static_cast<std::size_t>(capacity_),
               static_cast<std::size_t>(wider));
  }
  capacity_ = wider;
}

void SequenceScores::add(const StepScores& step) {
  CHECK(std::ssize(step.num_queries) == num_cells_ && step.num_blocks >= num_blocks_);
  reserve(step.num_blocks);
  num_blocks_ = step.num_blocks;
  for (std::int32_t cell = 0; cell < num_cells_; ++cell) {
    const std::int32_t num_queries = step.num_queries[static_cast<std::size_t>(cell)];
    if (num_queries == 0) continue;
    const float kept = memory_.kept_share(num_queries);
    const auto added = memory_.pooling == HeadPooling::kSum ? step.sum_of(cell) : step.greatest_of(cell);
    float* scores = scores_.data() + index(cell, 0);
    const float* of_step = added.data();
    for (std::size_t b = 0; b < added.size(); ++b) {
      scores[b] = scores[b] < 0.0f ? scores[b] : scores[b] * kept + of_step[b];
    }
  }
}

void SequenceScores::set_statistic(std::int32_t cell, std::int32_t block, float value, float longest_value) {
  reserve(block + 1);
  num_blocks_ = std::max(num_blocks_, block + 1);
  if (cell + 1 == num_cells_) num_measured_blocks_ = std::max(num_measured_blocks_, block + 1);
  constexpr float kStepsPerDoubling = 8.0f, kOfOne = 128.0f;
  const float magnitude = longest_value > 0.0f ? kOfOne + kStepsPerDoubling * std::log2(longest_value) : 0.0f;
  const auto code = static_cast<std::uint32_t>(std::clamp(magnitude, 0.0f, 255.0f));
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & ~kMagnitudeMask;
  statistics_[index(cell, block)] = std::bit_cast<float>(bits | code);
}

float SequenceScores::lost_share(std::int32_t cell) const {
  const std::span<const float> scores = this->scores(cell);
  float total = 0.0f, lost = 0.0f;
  for (std::size_t b = 0; b < scores.size(); ++b) {
    total += std::abs(scores[b]);
    if (scores[b] < 0.0f) lost += std::abs(scores[b]);
  }
  return total > 0.0f ? lost / total : 0.0f;
}

void SequenceScores::freeze(std::int32_t cell, std::int32_t block) {
  if (block >= num_blocks_) return;  // it was never attended
  float& score = scores_[index(cell, block)];
  score = -std::abs(score);
}

}  // namespace kvasir::kv
