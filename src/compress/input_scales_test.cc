#include "compress/input_scales.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compress/tensor_encoder.h"

namespace kvasir::compress::input_scales_test {
namespace {

constexpr std::int64_t kWidth = 64, kRows = 48;

// One layer whose matrices have an input that is far greater than the others.
class LayerSource final : public io::WeightSource {
 public:
  explicit LayerSource(const std::string& architecture) : metadata_({{"general.architecture", {architecture}}}) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (const char* part : {"attn_norm", "attn_q", "attn_k", "attn_v", "ffn_norm", "ffn_up"}) {
      const bool is_norm = std::string_view(part).ends_with("norm");
      std::vector<float>& numbers = numbers_.emplace_back(static_cast<std::size_t>(is_norm ? kWidth : kWidth * kRows));
      for (float& number : numbers) number = is_norm ? 1.0f + 0.1f * normal(random) : 0.02f * normal(random);
      tensors_.push_back({.name = std::string("blk.0.") + part + ".weight", .dtype = DType::kF32, .rank = is_norm ? 1 : 2,
                          .shape = {kWidth, is_norm ? 1 : kRows, 1, 1}});
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].data = reinterpret_cast<const std::byte*>(numbers_[i].data());
  }
  const io::Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find(std::string_view name) const override {
    const auto found = std::ranges::find(tensors_, name, &TensorView::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  void release_pages(const TensorView&) const override {}
  std::string_view description() const override { return "layer"; }

 private:
  io::Metadata metadata_;
  std::vector<std::vector<float>> numbers_;
  std::vector<TensorView> tensors_;
};

// Inputs of the layer's attention: column 5 is thirty times as large.
std::vector<float> inputs() {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> rows;
  for (std::int64_t i = 0; i < 300 * kWidth; ++i) rows.push_back(normal(random) * (i % kWidth == 5 ? 30.0f : 1.0f));
  return rows;
}

std::vector<float> numbers_of(const io::WeightSource& source, const char* name) {
  const TensorView& tensor = *source.find(name);
  std::vector<float> numbers(static_cast<std::size_t>(tensor.num_rows() * tensor.row_length()));
  EXPECT_TRUE(read_rows(source, tensor, 0, tensor.num_rows(), numbers));
  return numbers;
}

TEST(InputScales, AreFoldedSoThatTheModelSaysTheSame) {
  ThreadPool pool(2);
  const LayerSource source("llama");
  InputStatistics statistics({"blk.0.attn_q.weight"}, pool);
  const std::string_view names[] = {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"};
  statistics.observe(names, inputs(), kWidth);
  statistics.finish();
  const auto scales = choose_input_scales(source, statistics, pool);
  ASSERT_TRUE(scales) << scales.error().message;
  ASSERT_EQ(scales->of_norms.size(), 1u);  // the feed-forward network has no gate
  ASSERT_EQ(scales->of_matrices.size(), 3u);
  const std::vector<float> of_norm = scales->of_norms.at("blk.0.attn_norm.weight");
  EXPECT_GT(of_norm[5], 2.0f * of_norm[6]);

  const auto scaled = make_scaled_source(source, *scales);
  const std::vector<float> norm = numbers_of(source, "blk.0.attn_norm.weight"), new_norm = numbers_of(*scaled, "blk.0.attn_norm.weight");
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_v.weight"}) {
    const std::vector<float> matrix = numbers_of(source, name), new_matrix = numbers_of(*scaled, name);
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      ASSERT_NEAR(new_matrix[i] * new_norm[i % kWidth], matrix[i] * norm[i % kWidth], 1e-6f * std::fabs(matrix[i])) << name << " " << i;
    }
  }
  EXPECT_EQ(numbers_of(*scaled, "blk.0.ffn_up.weight"), numbers_of(source, "blk.0.ffn_up.weight"));
}

// Statistics of divided inputs are those that the divided rows would have given.
TEST(InputScales, DivideWhatIsKnownOfInputs) {
  ThreadPool pool(1);
  std::vector<float> rows = inputs(), scales;
  for (std::int64_t i = 0; i < kWidth; ++i) scales.push_back(0.5f + 0.25f * static_cast<float>(i % 9));
  InputStatistics statistics({"q"}, pool), expected({"q"}, pool);
  const std::string_view names[] = {"q"};
  statistics.observe(names, rows, kWidth);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] /= scales[i % kWidth];
  expected.observe(names, rows, kWidth);
  statistics.finish();
  expected.finish();
  statistics.divide_inputs({{"q", scales}});
  for (std::int64_t i = 0; i < kWidth; ++i) {
    const double a = expected.products_of("q")->at(i, i);
    EXPECT_NEAR(statistics.imatrix().mean_squares.at("q")[static_cast<std::size_t>(i)] * 300.0, a, 1e-4 * a);
    for (std::int64_t j = i; j < kWidth; ++j) {
      const double b = expected.products_of("q")->at(j, j);
      ASSERT_NEAR(statistics.products_of("q")->at(i, j), expected.products_of("q")->at(i, j), 1e-5 * std::sqrt(a * b)) << i << " " << j;
    }
  }
}

TEST(InputScales, SayWhereNormsAreNotKnown) {
  ThreadPool pool(1);
  InputStatistics statistics({}, pool);
  statistics.finish();
  EXPECT_EQ(choose_input_scales(LayerSource("cohere2"), statistics, pool).error().kind, ErrorKind::kUnmet);
}

}  // namespace
}  // namespace kvasir::compress::input_scales_test
