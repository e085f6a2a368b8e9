// Launches that wait for their turn.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "backend/cuda/kernels/launch_args.h"
#include "quant/dtype.h"

namespace kvasir::cuda {

struct MatmulLaunch {
  DType dtype = DType::kF32;
  MatmulArgs args;
  friend bool operator==(const MatmulLaunch&, const MatmulLaunch&) = default;
};

// A kernel and what it is called with. Memory that arguments point to is no part of it: a launch may be repeated when that
// has other contents.
using Launch = std::variant<MatmulLaunch, QuantizeArgs, NormArgs, ElementwiseArgs, RopeAndStoreArgs, AttentionArgs,
                            AttentionMergeArgs, TileMaximaArgs, GatherRowsArgs, FiniteRowsArgs, CombineRowsArgs>;
using LaunchList = std::vector<Launch>;

}  // namespace kvasir::cuda
