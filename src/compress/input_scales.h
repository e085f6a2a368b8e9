// Scales of inputs that are folded into the norm before them: activation-aware scaling (AWQ, Lin et al. 2023).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "compress/input_statistics.h"
#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::compress {

// By tensor, for each column of a matrix what it is multiplied by, and for each number of a norm what it is divided by. The
// model says the same, but matrices whose large inputs have large weights lose less when they are rounded.
struct InputScales {
  std::map<std::string, std::vector<float>, std::less<>> of_matrices, of_norms;
};

// For each norm that is known to feed the matrices of a layer alone. A scale is the root mean square of the input to the power
// of 0, 1/4, 1/2 or 3/4: that with which a sample of rows loses least in Q4_0, 0 where it wins less than 3%. Errors: kUnmet
// (an architecture whose norms are not known), those of reading rows. The same scales for any number of threads.
Result<InputScales> choose_input_scales(const io::WeightSource& source, const InputStatistics& statistics, ThreadPool& pool);

// `source` with these scales, all tensors that have some as F32. Borrows the source.
std::unique_ptr<io::WeightSource> make_scaled_source(const io::WeightSource& source, InputScales scales);

}  // namespace kvasir::compress
