// A forecast of attention that is learned from texts which a model reads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/run_request.h"
#include "io/kv_calibration.h"
#include "kvasir/engine.h"

namespace kvasir::eval {

struct LearnedKvForecast {
  io::KvForecastNumbers numbers;
  std::int64_t num_rows = 0;
  // Poisson's loss on the last window, which nothing was learned from: of the network, and of a forecast that says the mean.
  double held_out_loss = 0.0, mean_loss = 0.0;
};

// With a step more they fit the contexts of small models.
inline constexpr std::int32_t kForecastWindowTokens = 1920;

// Learned from all texts but the last. One of four says again, from time to time, what it said long before, and one is asked for
// facts that it said: a model must find them, which plain text hardly asks for. The same texts and model give the same numbers on one machine. Requires:
// two texts or more of kForecastWindowTokens each. Errors: those of the loading, kUnmet (no layer without a window),
// kCancelled.
Result<LearnedKvForecast> train_kv_forecast(const EngineConfig& config, std::span<const std::vector<TokenId>> texts,
                                            const std::function<void(double)>& progress, const KeepGoing& keep_going);

}  // namespace kvasir::eval
