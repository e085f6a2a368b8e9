// The KV calibration that lies beside a model's file, applied to its cache.
#pragma once

#include <string>

#include "io/kv_calibration.h"
#include "kv/kv_cache_manager.h"
#include "kv/policy/forecast_network.h"
#include "kvasir/result.h"

namespace kvasir {

// Sets the costs of formats, the weights of heads and the forecast; without a calibration formats keep their usual costs,
// and heads have no weights. The forecast is that of the calibration at `forecast_path`, where the path is not empty. Error
// (kBadFile): a file is another model's or does not fit this one, or there is no forecast at that path.
Status apply_kv_calibration(const std::string& model_path, const std::string& forecast_path, kv::KvCacheConfig& kv);

// As a calibration keeps it. `network`: of all cells.
io::KvForecastNumbers kv_forecast_numbers(const kv::ForecastNetwork& network);

}  // namespace kvasir
