#include "compress/quantize_forecast.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/process_memory.h"
#include "compress/tensor_encoder.h"

namespace kvasir::compress {
namespace {

constexpr std::int64_t kSampleFloats = 1 << 14;
// KL of a model whose weights all lose such a part of their squares, over that part: about what 8-bit to 2-bit files of
// small models and of an 8B have.
constexpr double kKlOfRelativeError = 8.0;

struct Sample {
  double seconds = 0.0, relative_error = 0.0;
};

Result<Sample> sample(const io::WeightSource& source, const PlannedTensor& tensor, const std::vector<float>* importance) {
  const std::int64_t length = tensor.source.row_length();
  const std::int64_t rows = std::clamp<std::int64_t>(kSampleFloats / length, 1, tensor.source.num_rows());
  std::vector<float> x(static_cast<std::size_t>(rows * length)), decoded(x.size());
  std::vector<std::byte> encoded(static_cast<std::size_t>(rows * row_bytes(tensor.choice.type, length)));
  const auto begin = std::chrono::steady_clock::now();
  KVASIR_CHECKED(read_rows(source, tensor.source, 0, rows, x));
  encode_rows(tensor.choice.type, x.data(), importance == nullptr ? nullptr : importance->data(), rows, length, encoded.data());
  info_of(tensor.choice.type).unpack_row(encoded.data(), rows * length, decoded.data());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EncodingError error;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error.errors += (double{x[i]} - decoded[i]) * (double{x[i]} - decoded[i]);
    error.squares += double{x[i]} * x[i];
  }
  return Sample{.seconds = seconds * static_cast<double>(tensor.source.num_elements()) / static_cast<double>(x.size()),
                .relative_error = error.relative()};
}

}  // namespace

Result<QuantizeForecast> forecast(const io::WeightSource& source, const QuantizePlan& plan, const Calibration& calibration,
                                  ThreadPool& pool) {
  constexpr double kSumBytesPerSecond = 1.0e9;  // hashing, writing and reading back
  QuantizeForecast forecast;
  double weighted_error = 0.0, all_elements = 0.0;
  for (const PlannedTensor& tensor : plan.tensors) {
    all_elements += static_cast<double>(tensor.source.num_elements());
    if (tensor.method == Method::kCopy) continue;
    const std::vector<float>* importance = nullptr;
    if (tensor.method == Method::kImatrix) importance = &calibration.imatrix->mean_squares.find(tensor.source.name)->second;
    KVASIR_TRY(const Sample found, sample(source, tensor, importance));
    forecast.seconds += found.seconds / pool.num_threads();
    weighted_error += found.relative_error * static_cast<double>(tensor.source.num_elements());
  }
  forecast.seconds += 2.0 * static_cast<double>(plan.num_bytes) / kSumBytesPerSecond;
  forecast.kl = kKlOfRelativeError * weighted_error / std::max(1.0, all_elements);
  constexpr std::int64_t kBuffersBytes = std::int64_t{24} << 20;
  forecast.peak_bytes = rss_bytes() + kBuffersBytes;
  return forecast;
}

}  // namespace kvasir::compress
