#include "engine/capacity_plan.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::capacity_plan_test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Llama's 70B, with so many KV heads: 80 layers, heads of 128.
CapacityModel model_70b(std::int32_t num_kv_heads) {
  CapacityModel model;
  model::ModelConfig& config = model.config;
  config.num_layers = 80;
  config.hidden_size = 8192;
  config.intermediate_size = 28672;
  config.num_heads = 64;
  config.num_kv_heads = num_kv_heads;
  config.head_dim = 128;
  config.vocab_size = 128256;
  config.context_length_tokens = 131072;
  model::LayerGroup all;
  for (std::int32_t i = 0; i < config.num_layers; ++i) all.layers.push_back(i);
  config.layer_groups = {all};
  model.weights = {.packed_bytes = 40 * kGiB, .mapped_bytes = kGiB / 2, .layer_products = 68'000'000'000,
                   .head_products = 1'050'000'000};
  model.program_bytes = kGiB / 16;
  return model;
}

const EngineConfig kF16 = {.kv_cache_type = KvCacheType::kF16};

CapacityPlan plan(const CapacityModel& model, CapacityRequest request, const EngineConfig& config = kF16) {
  return plan_capacity(config, model, request).value();
}

TEST(CapacityPlan, CountsKvByTheFormulaThatPeopleKnow) {
  const CapacityPlan grouped = plan(model_70b(8), {.context_tokens = 8192, .memory_bytes = 64 * kGiB});
  EXPECT_EQ(grouped.kv_bytes_per_token, 327'680);
  EXPECT_EQ(grouped.kv_bytes, 5 * kGiB / 2);
}

// Without grouped queries eight times as much: 5.37e9 bytes, 5.0 GiB.
TEST(CapacityPlan, ShowsWhatGroupedQueriesSave) {
  const CapacityRequest request = {.context_tokens = 2048, .memory_bytes = 64 * kGiB};
  const std::int64_t grouped = plan(model_70b(8), request).kv_bytes;
  const std::int64_t all_heads = plan(model_70b(64), request).kv_bytes;
  EXPECT_NEAR(static_cast<double>(grouped) / 1e9, 0.67, 0.005);
  EXPECT_NEAR(static_cast<double>(all_heads) / 1e9, 5.2, 0.2);
  EXPECT_EQ(all_heads, 8 * grouped);
}

TEST(CapacityPlan, IsTheSumOfItsParts) {
  const CapacityPlan sum = plan(model_70b(8), {.context_tokens = 2048, .num_users = 3, .memory_bytes = 64 * kGiB});
  EXPECT_EQ(sum.total_bytes,
            sum.weights_bytes + sum.mapped_bytes + sum.workspace_bytes + sum.kv_bytes + sum.program_bytes);
  EXPECT_TRUE(sum.fits);
  EXPECT_TRUE(sum.advice.empty());
}

TEST(CapacityPlan, CapsWindowsAtTheirTokens) {
  CapacityModel model = model_70b(8);
  model::LayerGroup window;
  for (std::int32_t i = 0; i < 40; ++i) window.layers.push_back(i);
  window.window = 1024;
  model.config.layer_groups[0].layers.erase(model.config.layer_groups[0].layers.begin(),
                                            model.config.layer_groups[0].layers.begin() + 40);
  model.config.layer_groups.push_back(window);
  const CapacityRequest request = {.context_tokens = 65536, .memory_bytes = 640 * kGiB};
  const std::int64_t full = std::int64_t{327'680} * 65536;
  const std::int64_t windowed = plan(model, request).kv_bytes;
  EXPECT_GT(windowed, full / 2);
  // Twice a window and the largest step, for prefixes that stay.
  EXPECT_LT(windowed, full / 2 + std::int64_t{327'680} / 2 * 2 * (1024 + 512 + 32));
}

TEST(CapacityPlan, AnEncodersStepIsAsLongAsTheContextAskedFor) {
  CapacityModel model = model_70b(8);
  model.config.is_encoder = true;
  const auto step_of = [&](std::int32_t context) {
    return plan(model, {.context_tokens = context, .memory_bytes = 640 * kGiB}).workspace_bytes;
  };
  EXPECT_EQ(step_of(128), step_of(192));  // the least
  EXPECT_LT(step_of(192), step_of(512));
  EXPECT_EQ(step_of(2048), 4 * step_of(512));
}

TEST(CapacityPlan, AnEncodersUsersShareAStep) {
  CapacityModel model = model_70b(8);
  model.config.is_encoder = true;
  const auto of_users = [&](std::int32_t num_users) {
    return plan(model, {.context_tokens = 512, .num_users = num_users, .memory_bytes = 640 * kGiB});
  };
  EXPECT_EQ(of_users(1).kv_bytes, of_users(8).kv_bytes);
  EXPECT_EQ(of_users(1).workspace_bytes, of_users(8).workspace_bytes);
}

TEST(CapacityPlan, AStepHasNoPartsThatTheWeightsDoNotTouch) {
  CapacityModel model = model_70b(8);
  const auto workspace = [&] {
    return plan(model, {.context_tokens = 512, .memory_bytes = 640 * kGiB}).workspace_bytes;
  };
  model.weights.has_gates = true;
  const std::int64_t gated = workspace();
  model.weights.has_gates = false;
  EXPECT_EQ(gated - workspace(), 512ll * 4 * model.config.intermediate_size);
}

TEST(CapacityPlan, FindsTheMostUsersAndTheLongestContext) {
  const CapacityModel model = model_70b(8);
  const CapacityRequest request = {.context_tokens = 8192, .num_users = 4, .memory_bytes = 64 * kGiB};
  const CapacityPlan found = plan(model, request);
  CapacityRequest more = request;
  more.num_users = found.max_users;
  EXPECT_TRUE(plan(model, more).fits);
  ++more.num_users;
  EXPECT_FALSE(plan(model, more).fits);
  CapacityRequest longer = request;
  longer.context_tokens = found.max_context_tokens;
  EXPECT_TRUE(plan(model, longer).fits);
  longer.context_tokens += 16;
  EXPECT_FALSE(plan(model, longer).fits);
}

TEST(CapacityPlan, AdvisesTheMildestChangeFirst) {
  CapacityModel model = model_70b(8);
  model.weights.packed_bytes = 44 * kGiB;
  const CapacityPlan found = plan(model, {.context_tokens = 32768, .num_users = 2, .memory_bytes = 56 * kGiB});
  ASSERT_FALSE(found.fits);
  const char* const beginnings[] = {"shorter prompts", "a smaller KV format", "a KV budget",
                                    "smaller weights", "fewer users",         "more memory"};
  ASSERT_EQ(found.advice.size(), std::size(beginnings));
  for (std::size_t i = 0; i < found.advice.size(); ++i) {
    EXPECT_TRUE(found.advice[i].starts_with(beginnings[i])) << found.advice[i];
  }
}

TEST(CapacityPlan, AdvisesNothingThatCannotHelp) {
  const CapacityPlan found = plan(model_70b(8), {.context_tokens = 2048, .memory_bytes = 20 * kGiB},
                                  {.kv_cache_type = KvCacheType::kQ12});
  ASSERT_FALSE(found.fits);
  EXPECT_EQ(found.max_users, 0);
  EXPECT_EQ(found.max_context_tokens, 0);
  EXPECT_TRUE(found.advice.front().starts_with("a KV budget")) << found.advice.front();
  EXPECT_TRUE(found.advice.back().starts_with("more memory"));
}

TEST(CapacityPlan, RefusesAContextBeyondTheModels) {
  const auto refused = plan_capacity(kF16, model_70b(8), {.context_tokens = 131073, .memory_bytes = kGiB});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "context: the model was trained for 131072 tokens, 131073 were asked for");
}

TEST(RatePlan, IsBoundByReadingForOneAndByProductsForMany) {
  const backend::MachineLimits limits = {.read_gb_s = 50, .int8_gmac_s = 900, .fp32_gflop_s = 200};
  const CapacityModel model = model_70b(8);
  const RatePlan one = plan_rates(kF16, model, {.context_tokens = 2048, .num_users = 1}, limits);
  const RatePlan many = plan_rates(kF16, model, {.context_tokens = 2048, .num_users = 256}, limits);
  EXPECT_TRUE(one.is_bandwidth_bound);
  EXPECT_FALSE(many.is_bandwidth_bound);
  // 43 GB at nine tenths of 50 GB/s, and 70 billion products at six tenths of 900 a nanosecond.
  EXPECT_NEAR(one.decode_tokens_per_s, 0.92, 0.05);
  EXPECT_GT(many.decode_tokens_per_s, 5 * one.decode_tokens_per_s);
}

TEST(RatePlan, ReadsOfExpertsThoseThatAreUsed) {
  const backend::MachineLimits limits = {.read_gb_s = 50, .int8_gmac_s = 900, .fp32_gflop_s = 200};
  CapacityModel model = model_70b(8);
  model.config.moe.rule = {.num_experts = 128, .num_used = 8};
  model.weights.expert_bytes = 39 * kGiB;
  model.weights.layer_products = 1'000'000'000;
  model.weights.head_products = 0;
  model.weights.expert_products = 67'000'000'000;
  const RatePlan one = plan_rates(kF16, model, {.context_tokens = 64, .num_users = 1}, limits);
  // 1 GiB and a sixteenth of 39 GiB.
  EXPECT_NEAR(1 / one.decode_tokens_per_s, 3.4375 * kGiB / (0.9 * 50e9) + 5.2e9 / (0.6 * 900e9), 4e-3);
}

}  // namespace
}  // namespace kvasir::capacity_plan_test
