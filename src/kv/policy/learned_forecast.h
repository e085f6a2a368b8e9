// A forecast of later attention by what was learned of the model beforehand.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kv/policy/block_forecast.h"
#include "kv/policy/forecast_network.h"
#include "kv/policy/policy.h"

namespace kvasir::kv {

// It needs no other memory than DecayedMass. A block's chance of being asked is a share of that one's. Inputs of a block: its remembered attention
// and its longest value beside the head's means, the mean itself, how much of a long memory was filled since, its age, its
// place, and the rank of its keys' distinctness. Amounts are logarithms.
//
// The same view gives the same bits on every instruction set.
//
// Thread safety: none.
class LearnedForecast {
 public:
  // The view must outlive it, and has a network of as many cells as it has.
  explicit LearnedForecast(const PolicyView& view);
  void forecast(std::int32_t cell, BlockForecast& forecast);

 private:
  using Inputs = std::array<float, ForecastNetwork::kNumInputs>;

  const PolicyView& view_;
  DecayedMass mass_;
  std::vector<Inputs> of_places_;  // by full block: what all cells have in common
  std::vector<float> ranks_;
};

}  // namespace kvasir::kv
