// Chooses a file's types for a number of bytes, by what parts of the model are measured to lose.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "cli/source_logits.h"
#include "compress/quantize_plan.h"
#include "io/gguf_entries.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::cli {

struct BudgetInput {
  const io::WeightSource& source;
  const std::vector<io::GgufEntry>& entries;
  compress::Calibration calibration;
  const SourceLogits& logits;
  std::string out;  // probes are written beside it
};

// How large the file is to be: in bytes, or in bits for each number of all tensors.
struct BudgetSize {
  std::optional<std::int64_t> file_bytes = {};
  double bits_per_weight = 0.0;
};

struct BudgetedTypes {
  std::map<std::string, DType, std::less<>> types;
  double predicted_kl = 0.0;
};

// Each part of the model (its queries, its heads, ...) is made coarse alone, and the file compared with the source: so much
// KL for so much loss of its outputs. Then the types are chosen that lose least within the size. `progress` is told a
// fraction. Errors: kUsage (too few bytes), those of quantize() and compare().
Result<BudgetedTypes> choose_budgeted_types(const BudgetInput& input, const BudgetSize& size, ThreadPool& pool,
                                            const GlobalOptions& globals, Interruption& interruption,
                                            const std::function<void(double)>& progress);

}  // namespace kvasir::cli
