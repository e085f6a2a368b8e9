// What a tensor would lose in each type, from a sample of its rows.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "compress/byte_budget.h"
#include "io/imatrix_file.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "tensor/tensor_view.h"

namespace kvasir::compress {

// Types that a byte budget chooses among, of those whose blocks divide the rows.
std::vector<DType> budget_types(std::int64_t row_length);

// The part of a model whose tensors are probed together: "attn_q", "ffn_down", "head".
std::string_view part_of(const TensorView& tensor, bool is_tied);

// The options of a tensor, of the expected squares of errors of its outputs: inputs with these mean squares that have nothing
// to do with each other. Errors: those of read_rows.
Result<std::vector<TypeOption>> type_losses(const io::WeightSource& source, const TensorView& tensor,
                                            std::span<const float> mean_squares, ThreadPool& pool);

}  // namespace kvasir::compress
