// The steps down of the blocks of one layer and head, the one that loses the least per byte first.
//
// loss = sqrt(forecast x mean forecast) x the loss of the coarser format. The forecast is attention with a
// memory of about 200 queries, never less than what the block's keys promise by being unlike the others
// (KeyDiff), and never below the mean: text that was not asked about yet looks like nothing in attention,
// which only tells the blocks that deserve more than their share. The root keeps these from taking the bits
// of all others: what is asked for late is as likely to be in a quiet block.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/policy/formats.h"
#include "kv/policy/policy.h"

namespace kvasir::kv {

class CellLadder {
 public:
  // The memory of attention that its forecast needs.
  static AttentionMemory memory();

  // The view must outlive it.
  explicit CellLadder(const PolicyView& view);

  // Reads what the cell's blocks are. Returns the bytes that they take beyond those allowed, or, below 0,
  // what is left of these.
  std::int64_t read(std::int32_t cell, std::int64_t allowed_bytes);

  // The rest is of the cell that was read last. Forecasts, and finds each block's next step.
  void rank();
  bool has_step() const { return !steps_.empty(); }
  // The loss of the cheapest step per byte. Requires: has_step().
  float price() const { return steps_.front().loss_per_byte; }
  // Takes the cheapest step. Returns the bytes saved; 0 when the block must stay. Requires: has_step().
  std::int64_t take_step();
  // Takes the cheapest steps until so many bytes are saved, or none is left.
  void pay(std::int64_t bytes);
  // Appends what was decided.
  void finish(std::vector<CellAction>& actions) const;

 private:
  struct Step {
    float loss_per_byte;
    std::size_t block;
  };
  static bool is_later(const Step& a, const Step& b);
  static std::size_t index_of(KvFormat format) { return static_cast<std::size_t>(format); }

  std::int64_t least_bytes_without_drops() const;

  void forecast();
  void raise_to_floor();
  void propose(std::size_t block);
  float worth(std::size_t block) const;
  bool may_become(KvFormat to, std::size_t block) const;
  float later_attention(std::size_t block) const;

  const PolicyView& view_;
  std::int32_t cell_ = 0;
  std::vector<Rung> rungs_;
  std::vector<float> forecast_;       // by full block
  std::vector<float> ranks_;          // likewise, by distinctness
  std::vector<std::size_t> rung_of_;  // likewise
  std::vector<KvFormat> present_;     // likewise
  // The part of a long memory that was filled since the block was: a block that few queries have seen counts
  // as if the others were like them.
  std::vector<float> seen_;
  std::array<std::int64_t, kNumKvFormats> bytes_of_ = {};
  std::array<std::size_t, kNumKvFormats> rung_of_format_ = {};  // the first that is not finer
  bool may_drop_ = false;                                       // formats alone do not keep the budget
  std::vector<Step> steps_;            // a heap: the next of each block
  std::span<const float> statistics_;  // of the cell, by full block
  float mean_forecast_ = 0.0f;         // before any was raised to the floor
  std::size_t least_massive_ = 0;      // value_magnitude of what stays for it
  float total_ = 0.0f, lost_ = 0.0f;   // attention in memory, and that of blocks that are gone
};

}  // namespace kvasir::kv
