#include "io/hf_tensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "io/hf_quantization.h"
#include "io/testing/safetensors_file.h"

namespace kvasir::io::hf_tensors_test {
namespace {

constexpr HfName kNames[] = {
    {"norm", "output_norm", HfTransform::kPlusOne},
    {"layers.*.decay", "blk.*.ssm_a", HfTransform::kNegExp},
    {"layers.*.mlp.experts.*.up_proj", "blk.*.ffn_up_exps"},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_gate_exps", HfTransform::kNone, HfPart::kEven},
    {"layers.*.mlp.experts.gate_up_proj", "blk.*.ffn_up_exps", HfTransform::kNone, HfPart::kOdd},
    {"layers.*.mlp.gate_up_proj", "blk.*.ffn_gate", HfTransform::kNone, HfPart::kFirstHalf},
    {"layers.*.mlp.gate_up_proj", "blk.*.ffn_up", HfTransform::kNone, HfPart::kSecondHalf},
    {"layers.*.conv", "blk.*.attn_qkv", HfTransform::kTranspose},
    {"layers.*.conv_halves", "blk.*.ffn_gate", HfTransform::kTranspose, HfPart::kFirstHalf},
    {"layers.*.attention.query_key_value", "blk.*.attn_qkv", HfTransform::kSplitHeads},
    {"layers.*.self_attn.sinks", "blk.*.attn_sinks"},
};
constexpr std::string_view kLeftOut[] = {"extra."};
const HfMapping kMapping = {.model_types = {"test"}, .architecture = "t", .names = kNames, .left_out = kLeftOut};

// A file of F32 tensors, mapped.
class Mapped {
 public:
  explicit Mapped(const std::vector<F32Tensor>& tensors, HfLayers layers = {.num_layers = 4})
      : bytes_(f32_safetensors(tensors)) {
    const auto stored =
        parse_safetensors({reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}, "a");
    EXPECT_TRUE(stored) << stored.error().message;
    auto mapped = map_tensors(*stored, kMapping, layers, HfQuantization());
    if (mapped) {
      mapped_ = std::move(*mapped);
    } else {
      error_ = mapped.error().message;
    }
  }

  const std::string& error() const { return error_; }
  const std::vector<std::string>& left_out() const { return mapped_.left_out; }
  std::size_t size() const { return mapped_.tensors.size(); }

  const MappedTensor* find(std::string_view name) const {
    for (const MappedTensor& tensor : mapped_.tensors) {
      if (tensor.view.name == name) return &tensor;
    }
    return nullptr;
  }
  // All values, row by row; empty when there is no such tensor. Read one row at a time, and all at once.
  std::vector<float> values(std::string_view name) const {
    const MappedTensor* tensor = find(name);
    if (tensor == nullptr) return {};
    const RowReader& rows = *tensor->rows;
    EXPECT_EQ(rows.num_rows(), tensor->view.num_rows());
    EXPECT_EQ(rows.row_length(), tensor->view.row_length());
    std::vector<float> all(static_cast<std::size_t>(tensor->view.num_elements())), single(all.size());
    rows.read(0, rows.num_rows(), reinterpret_cast<std::byte*>(all.data()));
    for (std::int64_t row = 0; row < rows.num_rows(); ++row) {
      rows.read(row, row + 1, reinterpret_cast<std::byte*>(single.data() + row * rows.row_length()));
    }
    EXPECT_EQ(all, single);
    return all;
  }
  std::vector<std::int64_t> shape(std::string_view name) const {
    const MappedTensor* tensor = find(name);
    if (tensor == nullptr) return {};
    return {tensor->view.shape.begin(), tensor->view.shape.begin() + tensor->view.rank};
  }

 private:
  std::string bytes_, error_;
  MappedTensors mapped_;
};

using Values = std::vector<float>;
using Shape = std::vector<std::int64_t>;

TEST(HfTensors, AreNamedAsInGguf) {
  const Mapped mapped({{"model.embed_tokens.weight", {3, 2}},
                       {"lm_head.weight", {3, 2}},
                       {"model.layers.2.self_attn.q_proj.weight", {4, 2}},
                       {"model.layers.2.self_attn.q_proj.bias", {4}},
                       {"model.layers.0.self_attn.sinks", {2}}});
  ASSERT_EQ(mapped.error(), "");
  EXPECT_EQ(mapped.size(), 5u);
  EXPECT_EQ(mapped.shape("token_embd.weight"), (Shape{2, 3}));
  EXPECT_NE(mapped.find("output.weight"), nullptr);
  EXPECT_EQ(mapped.shape("blk.2.attn_q.weight"), (Shape{2, 4}));
  EXPECT_EQ(mapped.values("blk.2.attn_q.bias"), (Values{0, 1, 2, 3}));
  EXPECT_NE(mapped.find("blk.2.attn_q.weight")->view.data, nullptr);  // where the file has it
  EXPECT_EQ(mapped.values("blk.0.attn_sinks.weight"), (Values{0, 1}));
}

TEST(HfTensors, AreFoundBehindEveryWrapper) {
  for (const std::string prefix : {"", "model.", "model.language_model.", "language_model.model.", "language_model."}) {
    const Mapped mapped({{prefix + "layers.0.input_layernorm.weight", {2}}});
    EXPECT_NE(mapped.find("blk.0.attn_norm.weight"), nullptr) << prefix << mapped.error();
  }
}

TEST(HfTensors, LeaveOutWhatTextNeedsNot) {
  const Mapped mapped({{"model.norm.weight", {2}},
                       {"vision_tower.patch.weight", {1, 1, 1, 1, 2}},
                       {"model.visual.merger.weight", {2}},
                       {"extra.weight", {2}},
                       {"model.layers.0.self_attn.rotary_emb.inv_freq", {2}},
                       {"model.layers.4.eh_proj.weight", {2, 2}}},
                      {.num_layers = 4, .num_extra_layers = 1});
  ASSERT_EQ(mapped.error(), "");
  EXPECT_EQ(mapped.size(), 1u);
  EXPECT_EQ(mapped.left_out().size(), 5u);
}

TEST(HfTensors, AreRefusedWhenNobodyKnowsThem) {
  EXPECT_EQ(Mapped({{"model.layers.0.mlp.odd.weight", {2}}}).error(),
            "tensor model.layers.0.mlp.odd.weight: not part of a t as Kvasir knows it");
  EXPECT_EQ(Mapped({{"model.norm.weight", {2}}, {"norm.weight", {2}}}).error(),
            "tensor norm.weight: appears twice, in two files or behind two prefixes");
  EXPECT_EQ(Mapped({F32Tensor{.name = "model.norm.weight", .shape = {}}}).error(),
            "tensor model.norm.weight: has the shape [], read are 1 to 4 axes, none of them empty");
}

TEST(HfTensors, MustHaveTheBiasesThatAreDemanded) {
  const std::vector<HfBias> biases = {{"layers.*.mlp.gate_up_proj", "mlp_bias"}, {"norm"}};
  const HfLayers layers = {.num_layers = 4, .biases = biases};
  const F32Tensor weight = {"model.layers.1.mlp.gate_up_proj.weight", {2, 2}};
  const F32Tensor bias = {"model.layers.1.mlp.gate_up_proj.bias", {2}};
  const F32Tensor sinks = {"model.layers.0.self_attn.sinks", {2}}, norm = {"model.norm.weight", {2}};
  EXPECT_EQ(Mapped({weight, bias, sinks}, layers).error(), "");
  EXPECT_EQ(Mapped({weight, sinks}, layers).error(),
            "tensor layers.1.mlp.gate_up_proj.bias: missing, as mlp_bias asks for it");
  EXPECT_EQ(Mapped({norm}, layers).error(), "tensor norm.bias: missing, and every t has one");
  EXPECT_EQ(Mapped({weight, norm}).error(), "");
}

TEST(HfTensors, AreShiftedAndExponentiated) {
  const Mapped mapped({{"model.norm.weight", {3}}, {"model.layers.1.decay", {2}}});
  ASSERT_EQ(mapped.error(), "");
  EXPECT_EQ(mapped.values("output_norm.weight"), (Values{1, 2, 3}));
  EXPECT_EQ(mapped.find("output_norm.weight")->view.data, nullptr);
  EXPECT_EQ(mapped.values("blk.1.ssm_a.weight").front(), -1.0f);
}

TEST(HfTensors, StackExperts) {
  const Mapped mapped({{"layers.0.mlp.experts.1.up_proj.weight", {2, 3}},
                       {"layers.0.mlp.experts.0.up_proj.weight", {2, 3}},
                       {"layers.0.mlp.experts.2.up_proj.weight", {2, 3}}});
  ASSERT_EQ(mapped.error(), "");
  EXPECT_EQ(mapped.shape("blk.0.ffn_up_exps.weight"), (Shape{3, 2, 3}));
  EXPECT_EQ(mapped.values("blk.0.ffn_up_exps.weight"), (Values{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Mapped({{"layers.0.mlp.experts.1.up_proj.weight", {2, 3}}}).error(),
            "tensor blk.0.ffn_up_exps.weight: expert 0 is missing");
  EXPECT_EQ(Mapped({{"layers.0.mlp.experts.0.up_proj.weight", {2, 3}}, {"layers.0.mlp.experts.1.up_proj.weight", {3, 2}}})
                .error(),
            "tensor blk.0.ffn_up_exps.weight: expert 1 has another shape or type than expert 0");
}

TEST(HfTensors, TakeFusedExpertsApart) {
  const Mapped mapped({{"layers.0.mlp.experts.gate_up_proj", {2, 4, 1}}, {"layers.0.mlp.experts.gate_up_proj_bias", {2, 4}}});
  ASSERT_EQ(mapped.error(), "");
  EXPECT_EQ(mapped.shape("blk.0.ffn_gate_exps.weight"), (Shape{1, 2, 2}));
  EXPECT_EQ(mapped.values("blk.0.ffn_gate_exps.weight"), (Values{0, 2, 4, 6}));
  EXPECT_EQ(mapped.values("blk.0.ffn_up_exps.weight"), (Values{1, 3, 5, 7}));
  EXPECT_EQ(mapped.shape("blk.0.ffn_gate_exps.bias"), (Shape{2, 2}));
  EXPECT_EQ(mapped.values("blk.0.ffn_up_exps.bias"), (Values{1, 3, 5, 7}));
}

TEST(HfTensors, TakeHalvesOfRows) {
  const Mapped mapped({{"layers.0.mlp.gate_up_proj.weight", {4, 2}}});
  ASSERT_EQ(mapped.error(), "");
  EXPECT_EQ(mapped.values("blk.0.ffn_gate.weight"), (Values{0, 1, 2, 3}));
  EXPECT_EQ(mapped.values("blk.0.ffn_up.weight"), (Values{4, 5, 6, 7}));
  EXPECT_EQ(Mapped({{"layers.0.mlp.gate_up_proj.weight", {3, 2}}}).error(),
            "tensor layers.*.mlp.gate_up_proj: is stored in a form that cannot be rearranged for this architecture");
}

TEST(HfTensors, AreTransposed) {
  const Mapped mapped({{"layers.0.conv.weight", {2, 3}}, {"layers.0.conv_halves.weight", {2, 2, 4}}});
  ASSERT_EQ(mapped.error(), "");
  EXPECT_EQ(mapped.shape("blk.0.attn_qkv.weight"), (Shape{2, 3}));
  EXPECT_EQ(mapped.values("blk.0.attn_qkv.weight"), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(mapped.shape("blk.0.ffn_gate.weight"), (Shape{2, 2, 2}));
  EXPECT_EQ(mapped.values("blk.0.ffn_gate.weight"), (Values{0, 4, 1, 5, 8, 12, 9, 13}));
}

TEST(HfTensors, SplitFusedHeads) {
  const Mapped mapped({{"gpt_neox.layers.0.attention.query_key_value.weight", {12, 1}},
                       {"gpt_neox.layers.0.attention.query_key_value.bias", {12}}},
                      {.num_layers = 1, .num_heads = 2});
  ASSERT_EQ(mapped.error(), "");
  const Values expected = {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11};
  EXPECT_EQ(mapped.values("blk.0.attn_qkv.weight"), expected);
  EXPECT_EQ(mapped.values("blk.0.attn_qkv.bias"), expected);
  EXPECT_EQ(mapped.shape("blk.0.attn_qkv.bias"), (Shape{12}));
}

}  // namespace
}  // namespace kvasir::io::hf_tensors_test
