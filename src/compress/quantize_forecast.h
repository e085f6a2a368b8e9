// What a plan will take and cost, from a few rows of its tensors.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "compress/quantize_plan.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::compress {

struct QuantizeForecast {
  double seconds = 0.0;         // without the comparison with the source
  std::int64_t peak_bytes = 0;  // of buffers; pages of the source besides
  double kl = 0.0;              // a rough one: models differ by a factor of 4
};

// Encodes a few rows of each tensor on one thread. Errors: those of read_rows.
Result<QuantizeForecast> forecast(const io::WeightSource& source, const QuantizePlan& plan, const Calibration& calibration,
                                  ThreadPool& pool);

}  // namespace kvasir::compress
