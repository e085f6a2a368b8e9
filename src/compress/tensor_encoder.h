// Writes the numbers of one tensor in another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/thread_pool.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "quant/dtype.h"
#include "tensor/tensor_view.h"

namespace kvasir::compress {

// Whether rows can be written in the type.
bool has_encoder(DType type);

// Writes rows of `row_length` floats one behind the other. `importance`: [row_length] or null.
void encode_rows(DType type, const float* x, const float* importance, std::int64_t num_rows, std::int64_t row_length,
                 std::byte* out);

// Rows [begin, begin + num_rows) of a tensor as floats. Error (kBadFile): a number that is none, with its place.
Status read_rows(const io::WeightSource& source, const TensorView& tensor, std::int64_t begin, std::int64_t num_rows,
                 std::span<float> out);

// What encoding lost: squares of errors over squares of numbers, each weighted by its importance.
struct EncodingError {
  double errors = 0.0, squares = 0.0;

  double relative() const { return squares > 0.0 ? errors / squares : 0.0; }
};

// Of rows that were encoded; `importance` as above.
EncodingError error_of_rows(DType type, const float* x, const float* importance, std::int64_t num_rows,
                            std::int64_t row_length, const std::byte* encoded);

// Takes a piece of the encoded tensor, from its byte `begin` on. Pieces come in order, one at a time, from any thread of the pool.
using EncodedSink = std::function<Status(std::int64_t begin, std::span<const std::byte> bytes)>;

// Encodes the whole tensor, some rows at a time; a row's bytes do not depend on the threads. `importance`: [experts,
// row_length] of as many experts as the tensor has matrices, or of one, or empty. Errors: those of read_rows and of the sink.
Result<EncodingError> encode_tensor(const io::WeightSource& source, const TensorView& tensor, DType type,
                                    std::span<const float> importance, ThreadPool& pool, const EncodedSink& sink);

}  // namespace kvasir::compress
