#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include "kv/kv_cache_config.h"

namespace kvasir::memory_plan_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kWeightBytes = 100 * kMiB;

model::ModelConfig small_model() {
  model::ModelConfig model;
  model.num_layers = 30;
  model.hidden_size = 576;
  model.intermediate_size = 1536;
  model.num_heads = 9;
  model.num_kv_heads = 3;
  model.head_dim = 64;
  model.vocab_size = 49152;
  model.context_length_tokens = 8192;
  model::LayerGroup all;
  for (std::int32_t i = 0; i < model.num_layers; ++i) all.layers.push_back(i);
  model.layer_groups = {all};
  return model;
}

MemoryPlan plan(const EngineConfig& config) {
  return plan_memory(config, small_model(), kWeightBytes, 40 * kMiB, 4096 * kMiB).value();
}

TEST(MemoryPlan, KeepsRoomForTheHiddenStatesOfOneLongestPrompt) {
  const MemoryPlan roomy = plan({.memory_bytes = 2048 * kMiB});
  const MemoryPlan without = plan({.memory_bytes = 2048 * kMiB, .prefill_only = false});
  EXPECT_EQ(roomy.max_prefill_only_tokens, 8192);
  EXPECT_EQ(without.max_prefill_only_tokens, 0);
  EXPECT_EQ(roomy.workspace_bytes - without.workspace_bytes, 8192 * 576 * 4);
}

TEST(MemoryPlan, GivesHiddenStatesASixteenthOfATightBudgetAtMost) {
  const MemoryPlan tight = plan({.memory_bytes = 256 * kMiB});
  EXPECT_GT(tight.max_prefill_only_tokens, 0);
  EXPECT_LE(tight.max_prefill_only_tokens * 576 * 4, (216 * kMiB - kWeightBytes) / 16);
  EXPECT_LE(tight.weight_bytes + tight.workspace_bytes + tight.kv_bytes, 216 * kMiB);
}

TEST(MemoryPlan, LeavesRoomForTheProgramAndWhatIsReserved) {
  const MemoryPlan tight = plan({.memory_bytes = 512 * kMiB, .reserved_bytes = 64 * kMiB});
  EXPECT_LE(tight.weight_bytes + tight.workspace_bytes + tight.kv_bytes, (512 - 40 - 64) * kMiB);
  EXPECT_GT(tight.weight_bytes + tight.workspace_bytes + tight.kv_bytes, (512 - 40 - 64 - 2) * kMiB);
}

TEST(MemoryPlan, HasRoomForTheTokensOfAStepThoughPromptsAreShort) {
  const MemoryPlan plan_of_short = plan({.max_model_len_tokens = 128, .memory_bytes = 2048 * kMiB});
  EXPECT_EQ(plan_of_short.max_prefill_only_tokens, 512);
}

TEST(MemoryPlan, HasNoMoreBlocksThanTheKvCacheTakes) {
  model::ModelConfig model = small_model();
  model.num_layers = model.num_kv_heads = 1;
  model.head_dim = 32;
  model.context_length_tokens = 10'485'760;
  model.layer_groups = {{.layers = {0}}};
  const auto planned = plan_memory({.memory_bytes = 4096 * 1024 * kMiB}, model, kWeightBytes, 40 * kMiB, kMiB).value();
  kv::KvCacheConfig kv;
  kv.groups = {{.num_blocks = planned.num_blocks[0], .cells_per_block = 1, .head_dim = 32}};
  EXPECT_TRUE(kv.validate()) << kv.validate().error().message;
  EXPECT_EQ(planned.max_model_len_tokens, 10'485'760);
}

TEST(MemoryPlan, TheModelsOwnLengthIsCutToWhatFits) {
  const auto planned = plan_memory({.memory_bytes = 256 * kMiB}, small_model(), kWeightBytes, 40 * kMiB, 4096 * kMiB);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_LT(planned->max_model_len_tokens, 8192);
  EXPECT_GE(planned->max_model_len_tokens, 64);
}

TEST(MemoryPlan, ALengthThatWasAskedForIsKeptOrRefused) {
  const auto planned = [](std::int64_t memory_bytes) {
    return plan_memory({.max_model_len_tokens = 8192, .memory_bytes = memory_bytes}, small_model(), kWeightBytes,
                       40 * kMiB, 4096 * kMiB);
  };
  const auto refused = planned(256 * kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kMachine);
  const std::string& message = refused.error().message;
  EXPECT_TRUE(message.starts_with("ctx: 8192 tokens were asked for, ")) << message;
  const std::int64_t sufficient = std::stoll(message.substr(message.find("--memory ") + 9)) * kMiB;
  ASSERT_TRUE(planned(sufficient)) << message;
  EXPECT_EQ(planned(sufficient)->max_model_len_tokens, 8192);
}

// Rows of every layer's embedding lie in the workspace, and no prompt runs layer by layer.
TEST(MemoryPlan, HasRoomForEmbeddingsPerLayer) {
  model::ModelConfig model = small_model();
  const auto planned = [&] {
    return plan_memory({.memory_bytes = 2048 * kMiB}, model, kWeightBytes, 40 * kMiB, 4096 * kMiB).value();
  };
  const MemoryPlan without = planned();
  model.per_layer_size = 256;
  const MemoryPlan with = planned();
  EXPECT_EQ(with.max_prefill_only_tokens, 0);
  EXPECT_GE(with.workspace_bytes, without.workspace_bytes - 4ll * 8192 * 576 + 4ll * 512 * 30 * 256);
}

TEST(MemoryPlan, GivesALargeModelMoreThanHalfOfTheMemory) {
  constexpr std::int64_t kFree = 24 * 1024 * kMiB;
  EXPECT_EQ(default_memory_bytes(100 * kMiB, kFree), kFree / 2);
  EXPECT_EQ(default_memory_bytes(kFree / 2, kFree), kFree / 2 + kFree / 4);
  EXPECT_EQ(default_memory_bytes(kFree * 3 / 4, kFree), kFree - kFree / 10);
  const model::ModelConfig model = small_model();
  EXPECT_TRUE(plan_memory({}, model, kFree * 3 / 4, 40 * kMiB, kFree));
  EXPECT_FALSE(plan_memory({}, model, kFree, 40 * kMiB, kFree));
}

TEST(MemoryPlan, NamesABudgetThatWouldDo) {
  for (const std::int64_t reserved : {std::int64_t{0}, 64 * kMiB}) {
    const auto planned = [&](std::int64_t memory_bytes) {
      return plan_memory({.memory_bytes = memory_bytes, .reserved_bytes = reserved}, small_model(), kWeightBytes,
                         40 * kMiB, 4096 * kMiB);
    };
    const auto refused = planned(kMiB);
    ASSERT_FALSE(refused);
    const std::string& message = refused.error().message;
    const auto at = message.find("--memory ");
    ASSERT_NE(at, message.npos) << message;
    const std::int64_t sufficient = std::stoll(message.substr(at + 9)) * kMiB;
    EXPECT_TRUE(planned(sufficient)) << message;
    EXPECT_FALSE(planned(sufficient * 8 / 10)) << message;
  }
}

}  // namespace
}  // namespace kvasir::memory_plan_test
