// The forecasts of all cells that a policy of the priced ladders has of a view.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/policy/block_forecast.h"
#include "kv/policy/learned_forecast.h"
#include "kv/policy/policy.h"

namespace kvasir::learn {

template <class Forecaster>
std::vector<kv::BlockForecast> forecasts_by(const kv::PolicyView& view) {
  Forecaster forecaster(view);
  std::vector<kv::BlockForecast> forecasts(static_cast<std::size_t>(view.num_cells()));
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) forecaster.forecast(cell, forecasts[static_cast<std::size_t>(cell)]);
  return forecasts;
}

// By the view's network; without one by decayed mass.
inline std::vector<kv::BlockForecast> forecasts_of(const kv::PolicyView& view) {
  return view.network != nullptr ? forecasts_by<kv::LearnedForecast>(view) : forecasts_by<kv::DecayedMass>(view);
}

}  // namespace kvasir::learn
