// The use that later queries are expected to make of the full blocks of one layer and KV head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/policy/policy.h"

namespace kvasir::kv {

// By full block.
struct BlockForecast {
  // Sums and prices of amounts up to this are finite.
  static constexpr float kGreatest = 1e9f;

  // Summed over the query heads of the KV head and over as many later queries as a long memory weighs.
  std::vector<float> attention;
  std::vector<float> asked;  // chance that one of the next few hundred queries leans on the block
  // Whether that chance is of the block and its head, so that it buys bits. Else it buys the block its stay alone.
  bool asked_buys_bits = false;

  // Whether all are numbers from 0 to kGreatest.
  bool is_sound() const;
};

// The forecast that needs no training. Attention goes on as a memory of about the last 200 queries has it. A
// block whose keys are unlike the others' (KeyDiff) is likelier to be asked for.
//
// The same view gives the same bits on every instruction set: sums have one order, and nothing is taken from
// the mathematical library.
//
// Thread safety: none.
class DecayedMass {
 public:
  // The memory of attention that it needs.
  static AttentionMemory memory();

  // The view must outlive it.
  explicit DecayedMass(const PolicyView& view);
  void forecast(std::int32_t cell, BlockForecast& forecast);
  // The part of a forecast attention that one query pays.
  static float of_one_query(float attention);
  // The part of a long memory that was filled since the block was.
  float filled_since(std::size_t block) const { return seen_[block]; }

 private:
  void forecast_asked(std::int32_t cell, std::span<float> asked);

  const PolicyView& view_;
  std::vector<float> seen_;  // filled_since() each full block
};

}  // namespace kvasir::kv
