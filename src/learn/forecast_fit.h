// How a forecast network is learned from rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "kv/policy/forecast_network.h"
#include "learn/forecast_rows.h"

namespace kvasir::learn {

struct FitOptions {
  std::int32_t num_steps = 4000;
  std::int32_t num_rows_per_step = 2048;
  std::uint64_t seed = 1;
  float greatest_rate = 3e-3f;
  const kv::ForecastNetwork* from = nullptr;  // goes on from this one, of as many cells; null: from random numbers
};

// A network of num_cells cells, by Adam (Kingma and Ba 2015) with a rate that falls as a cosine. The exponential of its first
// output is the expected target: it minimises exp(z) - target * z (Poisson's). Its second output minimises the logistic loss. The same rows and options give the same network on one machine.
// `keep_going` is asked with the share that is done; false ends it early. Requires: rows, of cells below num_cells.
kv::ForecastNetwork fit_forecast(std::span<const ForecastRow> rows, std::int32_t num_cells, const FitOptions& options,
                                 const std::function<bool(double)>& keep_going);

// The mean of exp(z) - target * z, without the second output's loss.
double forecast_loss(const kv::ForecastNetwork& network, std::span<const ForecastRow> rows);

}  // namespace kvasir::learn
