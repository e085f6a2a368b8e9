// The experts' tensors in each of the forms that files have them in.
#include "model/layers/moe.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_tensors.h"
#include "io/weight_source.h"
#include "model/model.h"

namespace kvasir::model::moe_test {
namespace {

constexpr const char* kModel = KVASIR_SOURCE_DIR "/tests/cases/models/qwen3moe-q4_0.gguf";

// A file, of whose tensors some have others in their place.
class ChangedSource final : public io::WeightSource {
 public:
  explicit ChangedSource(const io::WeightSource& file) : file_(file) {
    tensors_.assign(file.tensors().begin(), file.tensors().end());
  }

  void remove(const std::string& name) {
    std::erase_if(tensors_, [&name](const TensorView& tensor) { return tensor.name == name; });
  }
  void add(TensorView tensor) { tensors_.push_back(std::move(tensor)); }
  // A tensor that owns its bytes.
  void add(TensorView tensor, std::vector<std::byte> bytes) {
    bytes_.push_back(std::move(bytes));
    tensor.data = bytes_.back().data();
    add(std::move(tensor));
  }

  const io::Metadata& metadata() const override { return file_.metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find(std::string_view name) const override {
    for (const TensorView& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  void release_pages(const TensorView&) const override {}
  std::string_view description() const override { return "memory"; }

 private:
  const io::WeightSource& file_;
  std::vector<TensorView> tensors_;
  std::vector<std::vector<std::byte>> bytes_;
};

class MoeTensors : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = io::open_gguf(kModel);
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::move(*file);
    auto config = load_config(*file_);
    ASSERT_TRUE(config) << config.error().message;
    config_ = std::move(*config);
  }

  Result<Moe> load(const io::WeightSource& source) {
    WeightLoader loader(source, backend_, {});
    return load_moe(loader, config_, 0);
  }

  static void expect_same(const backend::Matrix& a, const backend::Matrix& b) {
    ASSERT_EQ(a.packed_bytes, b.packed_bytes);
    EXPECT_EQ(std::memcmp(backend::cpu(a).packed, backend::cpu(b).packed,
                          static_cast<std::size_t>(a.packed_bytes)),
              0);
  }

  // Puts one tensor an expert in the place of all experts' tensor.
  void take_apart(const std::string& name, ChangedSource& source) const {
    const TensorView together = *file_->find("blk.0.ffn_" + name + "_exps.weight");
    const std::int64_t num_experts = config_.moe.rule.num_experts;
    const std::int64_t rows = together.num_rows() / num_experts;
    source.remove(together.name);
    for (std::int64_t e = 0; e < num_experts; ++e) {
      TensorView expert = together.rows(e * rows, (e + 1) * rows);
      expert.name = "blk.0.ffn_" + name + "." + std::to_string(e) + ".weight";
      source.add(expert);
    }
  }

  ThreadPool pool_{1};
  backend::CpuBackend backend_{kernels::best_table(), pool_, backend::Precision::kExact};
  std::unique_ptr<io::WeightSource> file_;
  ModelConfig config_;
};

TEST_F(MoeTensors, OneAnExpertAreTheSameMatrix) {
  ChangedSource apart(*file_);
  for (const char* name : {"gate", "up", "down"}) take_apart(name, apart);
  const auto together_moe = load(*file_), apart_moe = load(apart);
  ASSERT_TRUE(together_moe) << together_moe.error().message;
  ASSERT_TRUE(apart_moe) << apart_moe.error().message;
  expect_same(*together_moe->gate.weight, *apart_moe->gate.weight);
  expect_same(*together_moe->up.weight, *apart_moe->up.weight);
  expect_same(*together_moe->down.weight, *apart_moe->down.weight);
}

TEST_F(MoeTensors, GateAndUpMayBeOne) {
  const TensorView gate = *file_->find("blk.0.ffn_gate_exps.weight");
  const TensorView up = *file_->find("blk.0.ffn_up_exps.weight");
  ChangedSource fused(*file_);
  fused.remove(gate.name);
  fused.remove(up.name);
  const std::int64_t num_experts = config_.moe.rule.num_experts;
  const std::int64_t bytes = gate.num_bytes() / num_experts;
  std::vector<std::byte> both;
  for (std::int64_t e = 0; e < num_experts; ++e) {
    for (const TensorView* part : {&gate, &up}) {
      both.insert(both.end(), part->data + e * bytes, part->data + (e + 1) * bytes);
    }
  }
  TensorView tensor = gate;
  tensor.name = "blk.0.ffn_gate_up_exps.weight";
  tensor.shape[1] *= 2;
  fused.add(tensor, both);
  const auto moe = load(fused);
  ASSERT_TRUE(moe) << moe.error().message;
  EXPECT_EQ(moe->up.weight, nullptr);
  EXPECT_EQ(moe->gate.weight->num_rows, gate.num_rows() + up.num_rows());
}

// As NVFP4 files have them.
TEST_F(MoeTensors, MayHaveAFactorEach) {
  const std::vector<float> factors = {0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f, 4.0f};
  ASSERT_EQ(std::ssize(factors), config_.moe.rule.num_experts);
  ChangedSource source(*file_);
  const auto add_factors = [&](const std::string& name, std::int64_t count) {
    TensorView tensor{.name = name, .rank = 1, .shape = {count, 1, 1, 1}};
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(float));
    std::memcpy(bytes.data(), factors.data(), bytes.size());
    source.add(tensor, bytes);
  };
  add_factors("blk.0.ffn_up_exps.scale", 8);
  add_factors("blk.0.ffn_gate_inp.scale", 1);
  add_factors("blk.0.ffn_gate_exps.scale", 4);
  const auto moe = load(source);
  ASSERT_TRUE(moe) << moe.error().message;
  EXPECT_EQ(moe->up.weight->scales, factors);
  EXPECT_EQ(moe->router->scales, std::vector<float>{0.5f});
  EXPECT_TRUE(moe->gate.weight->scales.empty());  // of another size
  EXPECT_TRUE(moe->down.weight->scales.empty());
}

TEST_F(MoeTensors, OfTwoTypesAreRefused) {
  ChangedSource source(*file_);
  take_apart("up", source);
  TensorView other = *source.find("blk.0.ffn_up.3.weight");
  source.remove(other.name);
  other.dtype = DType::kQ8_0;
  source.add(other, std::vector<std::byte>(static_cast<std::size_t>(other.num_bytes())));
  const auto moe = load(source);
  ASSERT_FALSE(moe);
  EXPECT_EQ(moe.error().message,
            "tensor blk.0.ffn_up.3.weight: must have the type of blk.0.ffn_up.0.weight, Q4_0, is Q8_0");
}

TEST_F(MoeTensors, ThatEndInsideARowGroupAreRefused) {
  config_.moe.intermediate_size = 90;
  const auto moe = load(*file_);
  ASSERT_FALSE(moe);
  EXPECT_EQ(moe.error().message,
            "tensor blk.0.ffn_gate_exps.weight: an expert must have a multiple of 16 rows, has 90");
}

}  // namespace
}  // namespace kvasir::model::moe_test
