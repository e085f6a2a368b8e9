// Makes the file of a plan.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "compress/quantize_plan.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::compress {

// After each piece: bytes of the source that are done, and all of them. False stops.
using QuantizeProgress = std::function<bool(std::int64_t done_bytes, std::int64_t all_bytes)>;

struct QuantizedFile {
  std::vector<double> errors;  // by tensor: EncodingError::relative
  std::string sha256;
  std::int32_t num_resumed = 0;  // tensors that an earlier run had made
  bool began_anew = false;       // an earlier run was of another source, or with other options
  std::int32_t num_uncorrected = 0;  // tensors of kGptq whose inputs' products have no inverse: they got kImatrix
};

// Writes `path` from the plan. While it works, `path`.part is the journal and `path`.part.gguf the file; a run that was
// stopped goes on where it was. `fingerprint`: of the source and of all that its bytes depend on. The file gets its name
// when it is whole. Errors: kMachine, kBadFile (a number that is none), kCancelled (what is done is kept).
Result<QuantizedFile> quantize(const io::WeightSource& source, const QuantizePlan& plan, const Calibration& calibration,
                               const std::string& fingerprint, const std::string& path, ThreadPool& pool,
                               const QuantizeProgress& progress);

}  // namespace kvasir::compress
