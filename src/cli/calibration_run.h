// Runs a model over text to see what its matrices are multiplied by.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "base/progress_reporter.h"
#include "base/thread_pool.h"
#include "cli/interruption.h"
#include "cli/verb.h"
#include "compress/input_statistics.h"
#include "kvasir/result.h"

namespace kvasir::cli {

inline constexpr std::int32_t kCalibrationWindow = 512;  // tokens that are read together

struct CalibrationOptions {
  std::string text;             // a file, or "self": the model's own text
  std::int64_t num_tokens = 0;  // at most; 0: 65,536 of a file, 16,384 of its own
};

struct CalibrationRun {
  std::unique_ptr<compress::InputStatistics> statistics;
  std::int64_t num_tokens = 0;
  std::string text_name;  // for importance files
};

// `with_products`: tensors whose inputs' products are wanted. Windows are read one after the other, so the sums are the
// same each time. Errors: those of open_session; kUnmet (the text is shorter than a window), kUsage (an encoder, a model
// without tokenizer), kCancelled.
Result<CalibrationRun> run_calibration(const CalibrationOptions& options, const std::string& model,
                                       std::set<std::string, std::less<>> with_products, const GlobalOptions& globals,
                                       ThreadPool& pool, Interruption& interruption, ProgressReporter& progress);

}  // namespace kvasir::cli
