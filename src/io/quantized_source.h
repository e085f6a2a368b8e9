// Weights that are quantised while they are loaded.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "io/weight_source.h"
#include "kvasir/result.h"

namespace kvasir::io {

// "q8_0", "q4_0", "q4_k", "mxfp4" or "bf16"; nothing for another name.
std::optional<DType> load_type_named(std::string_view name);

// `source` with the float matrices of layers and experts in `type`, and the head in Q8_0 (BF16 when that is the type).
// Blocks, norms, routers, biases, convolutions and the table of embeddings stay as they are.
// Rows that `type` does not divide become Q8_0, or stay. Rows are encoded when they are asked for, on up to
// `num_threads` threads. `has_head`: whether the embedding is the head too where there is no other.
std::unique_ptr<WeightSource> quantize_on_load(std::unique_ptr<WeightSource> source, DType type, int num_threads,
                                               bool has_head = true);

}  // namespace kvasir::io
