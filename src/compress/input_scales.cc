#include "compress/input_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "compress/tensor_encoder.h"

namespace kvasir::compress {
namespace {

constexpr std::int64_t kRowsOfSample = 64;
constexpr double kLeastGain = 0.03;
constexpr double kPowers[] = {0.0, 0.25, 0.5, 0.75};

// The matrices that a norm of a layer feeds, and tensors beside which it feeds more than these.
struct FoldGroup {
  std::string_view norm;
  std::array<std::string_view, 3> matrices;
  std::array<std::string_view, 2> others;
};
constexpr FoldGroup kPreNorms[] = {{"attn_norm", {"attn_q", "attn_k", "attn_v"}, {"attn_qkv", "attn_gate"}},
                                   {"ffn_norm", {"ffn_gate", "ffn_up"}, {"ffn_gate_inp", "ffn_gate_shexp"}}};
// Layers of these have a norm before attention and one before the feed-forward network, one behind the other.
constexpr std::string_view kPreNormArchitectures[] = {"llama", "mistral3", "smollm3", "qwen2", "qwen3", "seed_oss", "gemma2", "gemma3"};

struct FoundGroup {
  const TensorView* norm = nullptr;
  std::vector<const TensorView*> matrices;
};

// A group that is there as a whole, without anything else that reads the norm.
FoundGroup find_group(const io::WeightSource& source, std::int64_t layer, const FoldGroup& group) {
  const auto find = [&](std::string_view part, std::string_view what) { return source.find(fmt::format("blk.{}.{}.{}", layer, part, what)); };
  FoundGroup found;
  for (const std::string_view other : group.others) {
    if (!other.empty() && find(other, "weight") != nullptr) return {};
  }
  const TensorView* norm = find(group.norm, "weight");
  if (norm == nullptr || find(group.norm, "bias") != nullptr) return {};
  for (const std::string_view part : group.matrices) {
    if (part.empty()) continue;
    const TensorView* matrix = find(part, "weight");
    if (matrix == nullptr || matrix->row_length() != norm->row_length()) return {};
    found.matrices.push_back(matrix);
  }
  found.norm = norm;
  return found;
}

// Rounds to eight bits: the last bits of powers, in which machines differ, do not show.
float rounded_scale(double scale) {
  int exponent = 0;
  const double fraction = std::frexp(scale, &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(fraction * 256.0), exponent - 8));
}

// Roots of mean squares to a power, their geometric mean 1.
std::vector<float> scales_of(std::span<const float> mean_squares, double power) {
  double sum = 0.0;
  for (const float square : mean_squares) sum += square;
  const double least = 1e-6 * sum / static_cast<double>(mean_squares.size());
  std::vector<double> logarithms;
  double mean = 0.0;
  for (const float square : mean_squares) {
    logarithms.push_back(0.5 * power * std::log(std::max({double{square}, least, 1e-30})));
    mean += logarithms.back() / static_cast<double>(mean_squares.size());
  }
  std::vector<float> scales;
  for (const double logarithm : logarithms) scales.push_back(rounded_scale(std::exp(logarithm - mean)));
  return scales;
}

struct RowSample {
  std::vector<float> rows;  // [count, width]
  std::int64_t count = 0;
  double weight = 1.0;  // rows of the matrix that each stands for
};

Result<RowSample> sample_of(const io::WeightSource& source, const TensorView& matrix) {
  const std::int64_t width = matrix.row_length(), num_rows = matrix.num_rows();
  RowSample sample{.count = std::min(kRowsOfSample, num_rows)};
  sample.weight = static_cast<double>(num_rows) / static_cast<double>(sample.count);
  sample.rows.resize(static_cast<std::size_t>(sample.count * width));
  for (std::int64_t i = 0; i < sample.count; ++i) {
    KVASIR_CHECKED(read_rows(source, matrix, i * num_rows / sample.count, 1,
                             std::span(sample.rows).subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width))));
  }
  return sample;
}

// The loss of rounding the scaled rows.
double loss_with(const RowSample& sample, std::span<const float> mean_squares, const std::vector<float>& scales) {
  const std::int64_t width = std::ssize(scales);
  std::vector<float> rows(sample.rows), importance;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] *= scales[i % scales.size()];
  for (std::size_t i = 0; i < scales.size(); ++i) importance.push_back(mean_squares[i] / (scales[i] * scales[i]));
  std::vector<std::byte> encoded(static_cast<std::size_t>(sample.count * row_bytes(DType::kQ4_0, width)));
  encode_rows(DType::kQ4_0, rows.data(), importance.data(), sample.count, width, encoded.data());
  return sample.weight * error_of_rows(DType::kQ4_0, rows.data(), importance.data(), sample.count, width, encoded.data()).errors;
}

// Empty: none wins enough.
Result<std::vector<float>> best_scales(const io::WeightSource& source, const FoundGroup& group, std::span<const float> mean_squares,
                                       ThreadPool& pool) {
  std::vector<RowSample> samples;
  for (const TensorView* matrix : group.matrices) {
    KVASIR_TRY(RowSample sample, sample_of(source, *matrix));
    samples.push_back(std::move(sample));
  }
  double losses[std::size(kPowers)] = {};
  pool.parallel_for(std::ssize(kPowers), [&](std::int64_t i) {
    const std::vector<float> scales = scales_of(mean_squares, kPowers[i]);
    for (const RowSample& sample : samples) losses[i] += loss_with(sample, mean_squares, scales);
  });
  const auto best = std::ranges::min_element(losses) - losses;
  if (!(losses[best] < (1.0 - kLeastGain) * losses[0])) return std::vector<float>{};
  return scales_of(mean_squares, kPowers[best]);
}

class ScaledSource final : public io::WeightSource {
 public:
  ScaledSource(const io::WeightSource& source, InputScales scales) : source_(source), scales_(std::move(scales)) {
    for (const TensorView& tensor : source.tensors()) {
      tensors_.push_back(tensor);
      if (!is_scaled(tensor)) continue;
      tensors_.back().dtype = DType::kF32;
      tensors_.back().data = nullptr;
    }
  }
  const io::Metadata& metadata() const override { return source_.metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find(std::string_view name) const override {
    const auto found = std::ranges::find(tensors_, name, &TensorView::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  TensorView rows(const TensorView& tensor, std::int64_t begin, std::int64_t end, std::vector<std::byte>& scratch) const override {
    const TensorView& original = *source_.find(tensor.name);
    if (!is_scaled(tensor)) return source_.rows(original, begin, end, scratch);
    std::vector<std::byte> own;
    const TensorView read = source_.rows(original, begin, end, own);
    const std::int64_t width = tensor.row_length(), count = (end - begin) * width;
    std::vector<float> floats(static_cast<std::size_t>(count));
    info_of(read.dtype).unpack_row(read.data, count, floats.data());
    const auto of_matrix = scales_.of_matrices.find(tensor.name);
    const bool multiplies = of_matrix != scales_.of_matrices.end();
    const std::vector<float>& scales = multiplies ? of_matrix->second : scales_.of_norms.find(tensor.name)->second;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const float scale = scales[i % scales.size()];
      floats[i] = multiplies ? floats[i] * scale : floats[i] / scale;
    }
    scratch.resize(floats.size() * sizeof(float));
    std::memcpy(scratch.data(), floats.data(), scratch.size());
    return {.name = tensor.name, .dtype = DType::kF32, .rank = 2, .shape = {width, end - begin, 1, 1}, .data = scratch.data()};
  }
  void release_pages(const TensorView& tensor) const override { source_.release_pages(*source_.find(tensor.name)); }
  void release_rows(const TensorView& tensor, std::int64_t begin, std::int64_t end) const override {
    source_.release_rows(*source_.find(tensor.name), begin, end);
  }
  std::string_view description() const override { return source_.description(); }

 private:
  bool is_scaled(const TensorView& tensor) const {
    return scales_.of_matrices.contains(tensor.name) || scales_.of_norms.contains(tensor.name);
  }

  const io::WeightSource& source_;
  const InputScales scales_;
  std::vector<TensorView> tensors_;
};

}  // namespace

Result<InputScales> choose_input_scales(const io::WeightSource& source, const InputStatistics& statistics, ThreadPool& pool) {
  KVASIR_TRY(const std::string architecture, source.metadata().get_string("general.architecture"));
  const bool is_known = std::ranges::find(kPreNormArchitectures, architecture) != std::end(kPreNormArchitectures);
  const io::Imatrix imatrix = statistics.imatrix();
  InputScales scales;
  bool is_any_found = false;
  for (std::int64_t layer = 0; is_known && source.find(fmt::format("blk.{}.attn_norm.weight", layer)) != nullptr; ++layer) {
    for (const FoldGroup& each : kPreNorms) {
      const FoundGroup group = find_group(source, layer, each);
      if (group.norm == nullptr || group.norm->row_length() % 32 != 0) continue;
      const auto squares = imatrix.mean_squares.find(group.matrices.front()->name);
      if (squares == imatrix.mean_squares.end() || std::ssize(squares->second) != group.norm->row_length()) continue;
      is_any_found = true;
      KVASIR_TRY(const std::vector<float> best, best_scales(source, group, squares->second, pool));
      if (best.empty()) continue;
      scales.of_norms[group.norm->name] = best;
      for (const TensorView* matrix : group.matrices) scales.of_matrices[matrix->name] = best;
    }
  }
  if (!is_any_found) {
    return make_error(ErrorKind::kUnmet, fmt::format("--awq: what the norms of a model of architecture {} feed is not known", printable(architecture)), "awq");
  }
  return scales;
}

std::unique_ptr<io::WeightSource> make_scaled_source(const io::WeightSource& source, InputScales scales) {
  return std::make_unique<ScaledSource>(source, std::move(scales));
}

}  // namespace kvasir::compress
