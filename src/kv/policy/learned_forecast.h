// A forecast of later attention by what was learned of the model beforehand.
#pragma once

#include <cstdint>

#include "kv/policy/block_forecast.h"
#include "kv/policy/forecast_inputs.h"
#include "kv/policy/policy.h"

namespace kvasir::kv {

// It needs no other memory than DecayedMass. A block's chance of being asked is a share of the network's, or of that one's where
// the network has none.
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
  const PolicyView& view_;
  DecayedMass mass_;
  ForecastInputs inputs_;
};

}  // namespace kvasir::kv
