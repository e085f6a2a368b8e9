// A learned forecast's inputs for a block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/policy/block_forecast.h"
#include "kv/policy/forecast_network.h"
#include "kv/policy/policy.h"

namespace kvasir::kv {

// A block has these: its remembered attention and its longest value beside the head's means, the mean itself, how much of a long
// memory was filled since, its age, its place, and the rank of its keys' distinctness. Amounts are logarithms. The same view
// gives the same bits on every instruction set.
//
// Thread safety: none.
class ForecastInputs {
 public:
  using Inputs = std::array<float, ForecastNetwork::kNumInputs>;

  // Borrows both. Requires: the view has scores of DecayedMass's memory.
  ForecastInputs(const PolicyView& view, const DecayedMass& mass);

  // Reads a cell's blocks. False: its memory is no number.
  bool read(std::int32_t cell);
  // The cell that was read has these [full blocks], and this mean of their remembered attention, which is above 0.
  const std::vector<Inputs>& blocks() const { return blocks_; }
  float mean() const { return mean_; }

 private:
  const PolicyView& view_;
  std::vector<Inputs> blocks_;
  std::vector<float> ranks_;
  float mean_ = 0.0f;
};

}  // namespace kvasir::kv
