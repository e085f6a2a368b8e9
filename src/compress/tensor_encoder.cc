#include "compress/tensor_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "base/printable.h"
#include "quant/encode/encode.h"
#include "quant/fit/fitted_format.h"
#include "quant/fit/lanes.h"

namespace kvasir::compress {
namespace {

constexpr std::int64_t kFloatsAtOnce = std::int64_t{1} << 18;
constexpr std::int64_t kRowsOfEncoderTask = 16;

void encode_f16(const float* x, std::int64_t count, std::byte* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t half = float_to_half(x[i]);
    std::memcpy(out + 2 * i, &half, sizeof half);
  }
}

// Squares of a row in eight sums over some hundred numbers, in one order whatever the machine's vectors.
KVASIR_FIT_CLONES void add_squares(const float* x, const float* decoded, const float* importance, std::int64_t count, double* errors,
                                   double* squares) {
  using quant::Lanes, quant::lanes_at, quant::kLanes;
  constexpr std::int64_t kRun = 256;
  for (std::int64_t run = 0; run < count; run += kRun) {
    Lanes error_sums{}, square_sums{};
    const std::int64_t end = std::min(run + kRun, count);
    std::int64_t i = run;
    for (; i + kLanes <= end; i += kLanes) {
      const Lanes weights = importance == nullptr ? quant::all_lanes(1.0f) : lanes_at(importance + i), values = lanes_at(x + i);
      const Lanes differences = lanes_at(decoded + i) - values;
      error_sums += weights * differences * differences;
      square_sums += weights * values * values;
    }
    for (; i < end; ++i) {
      const float weight = importance == nullptr ? 1.0f : importance[i], difference = decoded[i] - x[i];
      error_sums[i % kLanes] += weight * difference * difference;
      square_sums[i % kLanes] += weight * x[i] * x[i];
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      *errors += double{error_sums[lane]};
      *squares += double{square_sums[lane]};
    }
  }
}

KVASIR_FIT_CLONES bool are_numbers(std::span<const float> values) {
  using Bits [[gnu::vector_size(4 * quant::kLanes)]] = std::uint32_t;
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  Bits greatest{};
  std::size_t i = 0;
  for (; i + quant::kLanes <= values.size(); i += quant::kLanes) {
    Bits bits;
    std::memcpy(&bits, values.data() + i, sizeof bits);
    bits &= kInfinity;
    greatest = bits > greatest ? bits : greatest;
  }
  std::uint32_t found = 0;
  for (int lane = 0; lane < quant::kLanes; ++lane) found = std::max(found, greatest[lane]);
  for (; i < values.size(); ++i) found = std::max(found, std::bit_cast<std::uint32_t>(values[i]) & kInfinity);
  return found < kInfinity;
}

}  // namespace

EncodingError error_of_rows(DType type, const float* x, const float* importance, std::int64_t num_rows,
                            std::int64_t row_length, const std::byte* encoded) {
  thread_local std::vector<float> decoded;
  decoded.resize(static_cast<std::size_t>(row_length));
  EncodingError error;
  for (std::int64_t row = 0; row < num_rows; ++row, x += row_length, encoded += row_bytes(type, row_length)) {
    info_of(type).unpack_row(encoded, row_length, decoded.data());
    add_squares(x, decoded.data(), importance, row_length, &error.errors, &error.squares);
  }
  return error;
}

bool has_encoder(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 || quant::fitted_format(type) != nullptr;
}

void encode_rows(DType type, const float* x, const float* importance, std::int64_t num_rows, std::int64_t row_length,
                 std::byte* out) {
  const std::int64_t bytes = row_bytes(type, row_length);
  for (std::int64_t row = 0; row < num_rows; ++row, x += row_length, out += bytes) {
    switch (type) {
      case DType::kF32: std::memcpy(out, x, static_cast<std::size_t>(bytes)); break;
      case DType::kF16: encode_f16(x, row_length, out); break;
      case DType::kBF16: quant::encode_bf16(x, row_length, out); break;
      default: quant::fitted_format(type)->fit(x, importance, row_length, out);
    }
  }
}

Status read_rows(const io::WeightSource& source, const TensorView& tensor, std::int64_t begin, std::int64_t num_rows,
                 std::span<float> out) {
  std::vector<std::byte> scratch;
  const TensorView rows = source.rows(tensor, begin, begin + num_rows, scratch);
  info_of(rows.dtype).unpack_row(rows.data, num_rows * tensor.row_length(), out.data());
  if (are_numbers(out)) return {};
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] - out[i] == 0.0f) continue;
    return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: element {} is {}", printable(tensor.name),
                                                       begin * tensor.row_length() + static_cast<std::int64_t>(i), out[i]));
  }
  return {};
}

Result<EncodingError> encode_tensor(const io::WeightSource& source, const TensorView& tensor, DType type,
                                    std::span<const float> importance, ThreadPool& pool, const EncodedSink& sink) {
  const std::int64_t length = tensor.row_length(), num_rows = tensor.num_rows();
  const std::int64_t out_bytes = row_bytes(type, length);
  const std::int64_t num_matrices = std::max<std::int64_t>(1, std::ssize(importance) / length);
  CHECK(importance.empty() || (std::ssize(importance) == num_matrices * length && num_rows % num_matrices == 0));
  const std::int64_t rows_at_once = std::max<std::int64_t>(1, kFloatsAtOnce / length);
  std::vector<float> floats;
  std::vector<std::byte> encoded, before;  // rows, and those before them, which meanwhile go to the sink
  std::vector<EncodingError> errors;
  std::vector<Status> done;
  EncodingError total;
  for (std::int64_t begin = 0; begin < num_rows; begin += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, num_rows - begin);
    floats.resize(static_cast<std::size_t>(count * length));
    encoded.resize(static_cast<std::size_t>(count * out_bytes));
    errors.assign(static_cast<std::size_t>(count), {});
    const std::int64_t num_tasks = 1 + (count + kRowsOfEncoderTask - 1) / kRowsOfEncoderTask;
    done.assign(static_cast<std::size_t>(num_tasks), Status{});
    pool.parallel_for(num_tasks, [&](std::int64_t task) {
      Status& status = done[static_cast<std::size_t>(task)];
      if (task == 0) {
        if (!before.empty()) status = sink((begin - rows_at_once) * out_bytes, before);
        return;
      }
      const std::int64_t first = (task - 1) * kRowsOfEncoderTask, last = std::min(count, first + kRowsOfEncoderTask);
      status = read_rows(source, tensor, begin + first, last - first,
                         std::span(floats).subspan(static_cast<std::size_t>(first * length), static_cast<std::size_t>((last - first) * length)));
      for (std::int64_t row = first; row < last && status; ++row) {
        const float* of_row = importance.empty() ? nullptr : importance.data() + (begin + row) / (num_rows / num_matrices) * length;
        const float* x = floats.data() + row * length;
        std::byte* out = encoded.data() + row * out_bytes;
        encode_rows(type, x, of_row, 1, length, out);
        errors[static_cast<std::size_t>(row)] = error_of_rows(type, x, of_row, 1, length, out);
      }
    });
    for (const Status& status : done) KVASIR_CHECKED(status);
    for (const EncodingError& error : errors) {
      total.errors += error.errors;
      total.squares += error.squares;
    }
    source.release_rows(tensor, begin, begin + count);
    std::swap(encoded, before);
  }
  if (!before.empty()) KVASIR_CHECKED(sink(num_rows * out_bytes - std::ssize(before), before));
  return total;
}

}  // namespace kvasir::compress
