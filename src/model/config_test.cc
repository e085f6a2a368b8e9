#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace kvasir::model::config_test {
namespace {

Result<ModelConfig> config_of(const std::string& name) {
  KVASIR_TRY(const auto source, io::open_gguf(KVASIR_SOURCE_DIR "/tests/cases/models/" + name));
  return load_config(*source);
}

TEST(ModelConfig, EveryLayerHasAPlaceInItsGroup) {
  const auto gemma = config_of("gemma3-q5_0.gguf");  // two window layers, then a global one
  ASSERT_TRUE(gemma) << gemma.error().message;
  const std::pair<std::int32_t, std::int32_t> expected[] = {{1, 0}, {1, 1}, {0, 0}};
  for (std::int32_t layer = 0; layer < gemma->num_layers; ++layer) {
    const KvPlace place = gemma->kv_place(layer);
    EXPECT_EQ(std::pair(place.group, place.layer_in_group), expected[layer]) << layer;
  }
}

TEST(ModelConfig, ADenseModelHasOneGroup) {
  const auto llama = config_of("llama-f32.gguf");
  ASSERT_TRUE(llama) << llama.error().message;
  ASSERT_EQ(llama->layer_groups.size(), 1u);
  EXPECT_EQ(llama->kv_place(1).layer_in_group, 1);
}

// A file that consists of metadata and an embedding.
class MetadataSource final : public io::WeightSource {
 public:
  explicit MetadataSource(std::map<std::string, io::MetadataValue, std::less<>> values)
      : metadata_(std::move(values)) {
    embedding_.name = "token_embd.weight";
    embedding_.rank = 2;
    embedding_.shape = {168, 10, 1, 1};
  }
  const io::Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return {&embedding_, 1}; }
  const TensorView* find(std::string_view name) const override {
    return name == embedding_.name ? &embedding_ : nullptr;
  }
  void release_pages(const TensorView&) const override {}
  std::string_view description() const override { return "memory"; }

 private:
  io::Metadata metadata_;
  TensorView embedding_;
};

// Gemma 3 with so many layers, and what a test adds.
ModelConfig gemma3(std::int64_t num_layers,
                   std::map<std::string, io::MetadataValue, std::less<>> values = {}) {
  values.merge(std::map<std::string, io::MetadataValue, std::less<>>{
      {"general.architecture", std::string("gemma3")},
      {"gemma3.block_count", num_layers},
      {"gemma3.embedding_length", std::int64_t{168}},
      {"gemma3.feed_forward_length", std::int64_t{96}},
      {"gemma3.context_length", std::int64_t{2048}},
      {"gemma3.attention.head_count", std::int64_t{4}},
      {"gemma3.attention.key_length", std::int64_t{32}},
      {"gemma3.attention.layer_norm_rms_epsilon", 1e-6},
      {"gemma3.attention.sliding_window", std::int64_t{512}}});
  return load_config(MetadataSource(std::move(values))).value();
}

TEST(ModelConfig, Gemma3Of27BScalesItsQueriesByItsWidth) {
  EXPECT_FLOAT_EQ(gemma3(61).attention_scale, 1.0f / std::sqrt(32.0f));
  EXPECT_FLOAT_EQ(gemma3(62).attention_scale, 1.0f / std::sqrt(168.0f / 4.0f));
  EXPECT_FLOAT_EQ(gemma3(62, {{"gemma3.attention.scale", 0.5}}).attention_scale, 0.5f);
}

TEST(ModelConfig, Gemma3TakesItsWindowsAsAPeriodOrLayerByLayer) {
  EXPECT_EQ(gemma3(7).layer_groups[0].layers, std::vector<std::int32_t>{5});
  const ModelConfig flags = gemma3(
      3, {{"gemma3.attention.sliding_window_pattern", std::vector<bool>{false, true, true}}});
  ASSERT_EQ(flags.layer_groups.size(), 2u);
  EXPECT_EQ(flags.layer_groups[0].layers, std::vector<std::int32_t>{0});
  EXPECT_EQ(flags.layer_groups[1].window, 512);
  const ModelConfig local = gemma3(3, {{"gemma3.attention.sliding_window_pattern", std::int64_t{0}}});
  ASSERT_EQ(local.layer_groups.size(), 1u);
  EXPECT_EQ(local.layer_groups[0].window, 512);
  const ModelConfig global = gemma3(3, {{"gemma3.attention.sliding_window", std::int64_t{0}}});
  ASSERT_EQ(global.layer_groups.size(), 1u);
  EXPECT_EQ(global.layer_groups[0].window, 0);
}

}  // namespace
}  // namespace kvasir::model::config_test
