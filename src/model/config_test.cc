#include "model/config.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

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

}  // namespace
}  // namespace kvasir::model::config_test
