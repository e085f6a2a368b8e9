#include "io/quantized_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "quant/encode/encode.h"

namespace kvasir::io::quantized_source_test {
namespace {

// F32 tensors of a name and a shape each, with values that differ.
class FloatSource final : public WeightSource {
 public:
  explicit FloatSource(const std::vector<std::pair<std::string, std::array<std::int64_t, 2>>>& tensors) {
    for (const auto& [name, shape] : tensors) {
      std::vector<float>& values = values_.emplace_back(static_cast<std::size_t>(shape[0] * shape[1]));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37) * 0.1f - 1.7f;
      tensors_.push_back({.name = name,
                          .rank = shape[1] > 1 ? 2 : 1,
                          .shape = {shape[0], shape[1], 1, 1},
                          .data = reinterpret_cast<const std::byte*>(values.data())});
    }
  }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find(std::string_view name) const override {
    const auto it = std::ranges::find(tensors_, name, &TensorView::name);
    return it == tensors_.end() ? nullptr : &*it;
  }
  void release_pages(const TensorView&) const override {}
  std::string_view description() const override { return "memory"; }

 private:
  Metadata metadata_;
  std::vector<std::vector<float>> values_;
  std::vector<TensorView> tensors_;
};

std::unique_ptr<WeightSource> quantized(DType type, int num_threads = 2) {
  return quantize_on_load(std::make_unique<FloatSource>(std::vector<std::pair<std::string, std::array<std::int64_t, 2>>>{
                              {"token_embd.weight", {256, 10}},
                              {"blk.0.attn_q.weight", {256, 7}},
                              {"blk.0.attn_k.weight", {96, 4}},
                              {"blk.0.attn_v.weight", {20, 4}},
                              {"blk.0.attn_norm.weight", {256, 1}},
                              {"blk.0.ffn_gate_inp.weight", {256, 8}}}),
                          type, num_threads);
}

TEST(QuantizeOnLoad, GivesMatricesOfLayersTheType) {
  const auto source = quantized(DType::kQ4_K);
  const auto type_of = [&](const char* name) { return source->find(name)->dtype; };
  EXPECT_EQ(type_of("blk.0.attn_q.weight"), DType::kQ4_K);
  EXPECT_EQ(type_of("blk.0.attn_k.weight"), DType::kQ8_0);  // its rows are no multiple of 256
  EXPECT_EQ(type_of("blk.0.attn_v.weight"), DType::kF32);   // nor of 32
  EXPECT_EQ(type_of("blk.0.attn_norm.weight"), DType::kF32);
  EXPECT_EQ(type_of("blk.0.ffn_gate_inp.weight"), DType::kF32);
}

TEST(QuantizeOnLoad, GivesATiedModelAHeadOfItsOwn) {
  const auto source = quantized(DType::kQ4_0);
  EXPECT_EQ(source->find("token_embd.weight")->dtype, DType::kF32);
  ASSERT_NE(source->find("output.weight"), nullptr);
  EXPECT_EQ(source->find("output.weight")->dtype, DType::kQ8_0);
  EXPECT_EQ(source->find("output.weight")->num_rows(), 10);
}

TEST(QuantizeOnLoad, RoundsAnyRowToBf16AndTheHeadToo) {
  const auto source = quantized(DType::kBF16);
  const auto type_of = [&](const char* name) { return source->find(name)->dtype; };
  EXPECT_EQ(type_of("blk.0.attn_q.weight"), DType::kBF16);
  EXPECT_EQ(type_of("blk.0.attn_v.weight"), DType::kBF16);
  EXPECT_EQ(type_of("blk.0.attn_norm.weight"), DType::kF32);
  EXPECT_EQ(type_of("output.weight"), DType::kBF16);
}

TEST(QuantizeOnLoad, EncodesTheSameRowsOnAnyNumberOfThreads) {
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kMXFP4, DType::kBF16}) {
    const auto one = quantized(type, 1), many = quantized(type, 5);
    const TensorView& tensor = *one->find("blk.0.attn_q.weight");
    std::vector<std::byte> a, b;
    const TensorView rows = one->rows(tensor, 1, 7, a);
    const TensorView same = many->rows(*many->find("blk.0.attn_q.weight"), 1, 7, b);
    ASSERT_EQ(rows.num_bytes(), same.num_bytes());
    EXPECT_EQ(std::memcmp(rows.data, same.data, static_cast<std::size_t>(rows.num_bytes())), 0);
    std::vector<float> values(256);
    std::vector<std::byte> expected(static_cast<std::size_t>(row_bytes(type, 256)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i + 256) % 37) * 0.1f - 1.7f;
    quant::encoder_of(type)(values.data(), 256, expected.data());
    EXPECT_EQ(std::memcmp(rows.data, expected.data(), expected.size()), 0) << name_of(type);
  }
}

TEST(QuantizeOnLoad, KnowsItsTypesByName) {
  EXPECT_EQ(load_type_named("mxfp4"), DType::kMXFP4);
  EXPECT_FALSE(load_type_named("q5_k"));
}

}  // namespace
}  // namespace kvasir::io::quantized_source_test
