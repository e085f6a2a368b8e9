#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/left_out_tensors.h"
#include "model/metadata_source.h"
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

// Gemma 3 with so many layers, and what a test adds.
ModelConfig gemma3(std::int64_t num_layers, MetadataMap values = {}) {
  values.merge(MetadataMap{{"general.architecture", std::string("gemma3")},
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

// A small model of a family, with what a test adds; a key with an empty string is left out.
Result<ModelConfig> small(const std::string& family, MetadataMap values,
                          const std::vector<std::string>& tensors = {}) {
  MetadataMap all = {{"general.architecture", family}};
  values.merge(MetadataMap{{"block_count", std::int64_t{8}},
                           {"embedding_length", std::int64_t{168}},
                           {"feed_forward_length", std::int64_t{96}},
                           {"context_length", std::int64_t{8192}},
                           {"attention.head_count", std::int64_t{4}},
                           {"attention.key_length", std::int64_t{32}},
                           {"attention.layer_norm_rms_epsilon", 1e-6}});
  for (auto& [key, value] : values) {
    if (value == io::MetadataValue(std::string())) continue;
    std::string full = family;
    full.append(".").append(key);
    all.emplace(std::move(full), std::move(value));
  }
  return load_config(MetadataSource(std::move(all), tensors));
}

std::string error_of(const Result<ModelConfig>& config) { return config ? "" : config.error().message; }

TEST(ModelConfig, OneValueMayBeAnArrayOfEqualOnes) {
  const auto equal = small("llama", {{"attention.head_count_kv", std::vector<std::int64_t>(8, 2)},
                                     {"feed_forward_length", std::vector<std::int64_t>(8, 96)}});
  ASSERT_TRUE(equal) << equal.error().message;
  EXPECT_EQ(equal->num_kv_heads, 2);
  EXPECT_EQ(equal->intermediate_size, 96);
  const auto differing = small("llama", {{"attention.head_count_kv", std::vector<std::int64_t>{2, 4}}});
  EXPECT_NE(error_of(differing).find("llama.attention.head_count_kv"), std::string::npos);
}

TEST(ModelConfig, LayerNormsHaveAnEpsilonOfTheirOwnName) {
  const auto config = small("starcoder2", {{"attention.layer_norm_rms_epsilon", std::string()},
                                           {"attention.layer_norm_epsilon", 1e-3}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FLOAT_EQ(config->norm_eps, 1e-3f);
}

TEST(ModelConfig, ModelsOfExpertsAloneNeedNoFeedForwardLength) {
  const auto config = small("llama", {{"feed_forward_length", std::string()}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->intermediate_size, 0);
}

TEST(ModelConfig, YarnGrowsAttentionWithTheContext) {
  const MetadataMap yarn = {{"rope.scaling.type", std::string("yarn")},
                            {"rope.scaling.factor", 8.0},
                            {"rope.scaling.original_context_length", std::int64_t{1024}}};
  const auto plain = small("llama", yarn);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->rope.scaling, RopeScaling::kYarn);
  EXPECT_NEAR(plain->rope.attention_factor, 1.0 + 0.1 * std::log(8.0), 1e-12);
  MetadataMap with = yarn;
  with["rope.scaling.yarn_log_multiplier"] = 1.0;
  with["attention.temperature_scale"] = 0.25;
  const auto mistral = small("mistral3", with);
  ASSERT_TRUE(mistral) << mistral.error().message;
  EXPECT_NEAR(mistral->rope.attention_factor, 1.0, 1e-12);
  EXPECT_EQ(mistral->temperature_scale, 0.25f);
  EXPECT_EQ(mistral->temperature_length_tokens, 1024);
  MetadataMap without = yarn;
  without.erase("rope.scaling.original_context_length");
  const auto whole = small("llama", without);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->rope.original_context_tokens, whole->context_length_tokens);
}

TEST(ModelConfig, LongropeIsKnownByItsTensors) {
  const auto config = small("phi3", {{"rope.scaling.original_context_length", std::int64_t{1024}}},
                            {"rope_factors_long.weight", "rope_factors_short.weight"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->rope.scaling, RopeScaling::kLongRope);
  EXPECT_NEAR(config->rope.attention_factor, std::sqrt(1.0 + std::log(8.0) / std::log(1024.0)), 1e-12);
}

TEST(ModelConfig, AFileMaySayInWhichOrderItsHeadsLie) {
  EXPECT_FALSE(small("llama", {})->rope_style);
  const auto style = small("llama", {{"rope.style", std::string("halves")}})->rope_style;
  EXPECT_EQ(style, backend::RopeStyle::kHalves);
  EXPECT_EQ(error_of(small("llama", {{"rope.style", std::string("thirds")}})),
            "metadata llama.rope.style: must be halves or pairs, is 'thirds'");
}

TEST(ModelConfig, AWindowWithoutAPatternIsEveryLayersOrRefused) {
  const auto llama = small("llama", {{"attention.sliding_window", std::int64_t{64}}});
  ASSERT_TRUE(llama) << llama.error().message;
  ASSERT_EQ(llama->layer_groups.size(), 1u);
  EXPECT_EQ(llama->layer_groups[0].window, 64);
  EXPECT_EQ(error_of(small("qwen2", {{"attention.sliding_window", std::int64_t{64}}})),
            "metadata qwen2.attention.sliding_window_pattern: missing, so nobody knows which layers see a "
            "window of "
            "64 tokens");
  EXPECT_TRUE(small("qwen2", {{"attention.sliding_window", std::int64_t{8192}}}));
}

TEST(ModelConfig, LayersThatSeeAllMayNotTurn) {
  const auto cohere = small("cohere2", {{"attention.sliding_window", std::int64_t{64}}});
  ASSERT_TRUE(cohere) << cohere.error().message;
  EXPECT_FLOAT_EQ(cohere->logit_scale, 0.0625f);
  const auto smollm3 = small("smollm3", {});
  ASSERT_TRUE(smollm3) << smollm3.error().message;
  for (const auto& config : {*cohere, *smollm3}) {
    for (std::int32_t layer = 0; layer < 8; ++layer) {
      EXPECT_EQ(config.rope_of(layer).rotary_dim, layer % 4 == 3 ? 0 : 32) << config.architecture << layer;
    }
  }
  const auto listed = small("smollm3", {{"rope.layers", std::vector<std::int64_t>{0, 1, 1, 1, 0, 1, 1, 1}}});
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->rope_of(0).rotary_dim, 0);
  EXPECT_EQ(listed->rope_of(3).rotary_dim, 32);
  EXPECT_EQ(error_of(small("smollm3", {{"rope.layers", std::vector<std::int64_t>{0, 1}}})),
            "metadata smollm3.rope.layers: must have an entry for each of the 8 layers, has 2");
  EXPECT_EQ(small("exaone4", {})->rope_of(3).rotary_dim, 32);
  EXPECT_EQ(small("exaone4", {{"attention.sliding_window", std::int64_t{64}}})->rope_of(3).rotary_dim, 0);
}

TEST(ModelConfig, OnlyTheLayersOfOlmo3ThatSeeAllAreScaled) {
  const auto olmo = small("olmo2", {{"attention.sliding_window", std::int64_t{64}},
                                    {"rope.scaling.type", std::string("yarn")},
                                    {"rope.scaling.factor", 8.0},
                                    {"rope.scaling.original_context_length", std::int64_t{1024}}});
  ASSERT_TRUE(olmo) << olmo.error().message;
  EXPECT_EQ(olmo->rope_of(0).scaling, RopeScaling::kNone);
  EXPECT_EQ(olmo->rope_of(0).attention_factor, 1.0);
  EXPECT_EQ(olmo->rope_of(3).scaling, RopeScaling::kYarn);
}

TEST(ModelConfig, GraniteDividesItsLogitsAndMayDoWithoutRope) {
  const auto granite = small("granite", {{"logit_scale", 8.0}, {"rope.scaling.finetuned", false}});
  ASSERT_TRUE(granite) << granite.error().message;
  EXPECT_EQ(granite->logit_scale, 0.125f);
  EXPECT_EQ(granite->rope.rotary_dim, 0);
  EXPECT_EQ(small("granite", {})->rope.rotary_dim, 32);
}

TEST(ModelConfig, Gemma2HasCapsUnlessItsFileSaysOtherwise) {
  const auto gemma = small("gemma2", {});
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_EQ(gemma->attention_softcap, 50.0f);
  EXPECT_EQ(gemma->final_softcap, 30.0f);
  EXPECT_EQ(gemma->layer_groups.size(), 2u);
  EXPECT_EQ(small("gemma2", {{"final_logit_softcapping", 0.0}})->final_softcap, 0.0f);
  EXPECT_EQ(small("gemma3", {{"final_logit_softcapping", 12.0}})->final_softcap, 12.0f);
}

// Two kinds of layers with heads of their own, of which the last two share.
Result<ModelConfig> gemma4(MetadataMap values) {
  values.merge(MetadataMap{{"block_count", std::int64_t{6}},
                           {"attention.key_length", std::int64_t{64}},
                           {"attention.key_length_swa", std::int64_t{32}},
                           {"attention.value_length", std::int64_t{64}},
                           {"attention.value_length_swa", std::int64_t{32}},
                           {"attention.head_count_kv", std::vector<std::int64_t>{4, 4, 1, 4, 4, 1}},
                           {"attention.sliding_window", std::int64_t{128}},
                           {"attention.sliding_window_pattern",
                            std::vector<bool>{true, true, false, true, true, false}},
                           {"attention.shared_kv_layers", std::int64_t{2}},
                           {"embedding_length_per_layer_input", std::int64_t{8}},
                           {"feed_forward_length", std::vector<std::int64_t>{96, 96, 96, 96, 192, 192}}});
  return small("gemma4", std::move(values), {"rope_freqs.weight"});
}

TEST(ModelConfig, Gemma4HasTwoKindsOfHeadsAndLayersThatShare) {
  const auto config = gemma4({});
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->layer_groups.size(), 2u);
  const LayerGroup &global = config->layer_groups[0], &local = config->layer_groups[1];
  EXPECT_EQ(global.layers, std::vector<std::int32_t>{2});
  EXPECT_EQ(local.layers, (std::vector<std::int32_t>{0, 1, 3}));
  EXPECT_EQ(std::pair(config->kv_size_of(global), config->kv_size_of(local)), std::pair(64, 128));
  EXPECT_EQ(std::pair(config->q_size_of(global), config->q_size_of(local)), std::pair(256, 128));
  EXPECT_EQ(std::pair(config->kv_layer(4), config->kv_layer(5)), std::pair(3, 2));
  EXPECT_EQ(config->last_kv_layer(), 3);
  EXPECT_TRUE(config->has_window(4));
  EXPECT_EQ(config->kv_place(5).layer_in_group, 0);
  EXPECT_EQ(config->kv_place(4).layer_in_group, 2);
  EXPECT_EQ(std::pair(config->intermediate_size_of(3), config->intermediate_size_of(4)), std::pair(96, 192));
  EXPECT_EQ(config->attention_scale, 1.0f);
  EXPECT_EQ(config->final_softcap, 30.0f);
  EXPECT_FALSE(config->can_run_layer_by_layer());
  EXPECT_EQ(config->rope_of(2).rotary_dim, 64);
  EXPECT_EQ(config->rope_of(3).rotary_dim, 32);
  EXPECT_FALSE(is_left_out("rope_freqs.weight", *config));
  EXPECT_TRUE(is_left_out("blk.5.attn_k.weight", *config));
  EXPECT_FALSE(is_left_out("blk.3.attn_k.weight", *config));
  EXPECT_FALSE(is_left_out("blk.5.attn_q.weight", *config));
}

TEST(ModelConfig, Gemma4WithLayersThatDoNotFitIsRefused) {
  EXPECT_EQ(error_of(gemma4({{"attention.shared_kv_layers", std::int64_t{5}}})),
            "metadata gemma4.attention.shared_kv_layers: must leave each kind of layer one of its own, is 5: layer 2 "
            "has none before it");
  EXPECT_EQ(error_of(gemma4({{"attention.head_count_kv", std::vector<std::int64_t>{4, 2, 1, 4, 4, 1}}})),
            "metadata gemma4.attention.head_count_kv: layer 1 must have 4 as others of its kind, has 2");
  EXPECT_EQ(error_of(gemma4({{"feed_forward_length", std::vector<std::int64_t>{96, 192}}})),
            "metadata gemma4.feed_forward_length: must have an entry for each of the 6 layers, has 2");
  EXPECT_EQ(error_of(gemma4({{"attention.value_length_swa", std::int64_t{16}}})),
            "metadata gemma4.attention.value_length_swa: must equal key_length_swa 32, is 16");
  EXPECT_EQ(error_of(small("gemma4", {})),
            "tensor rope_freqs.weight: missing, so nobody knows which pairs of layer 0 turn");
}

TEST(ModelConfig, OtherFamiliesDoNotShare) {
  EXPECT_NE(error_of(small("llama", {{"attention.shared_kv_layers", std::int64_t{2}}})).find("shared_kv_layers"),
            std::string::npos);
}

TEST(LeftOutTensors, AreThoseOfEncodersAndOfLayersThatPredictFurtherTokens) {
  const auto config = small("glm4", {{"nextn_predict_layers", std::int64_t{2}}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->num_layers, 6);
  for (const char* name : {"v.patch_embd.weight", "mm.0.weight", "a.conv.weight", "blk.6.attn_q.weight",
                           "blk.7.nextn.eh_proj.weight", "blk.1.ffn_up.input_scale"}) {
    EXPECT_TRUE(is_left_out(name, *config)) << name;
  }
  for (const char* name : {"blk.5.attn_q.weight", "blk.8.attn_q.weight", "output.bias", "blk.x", "blk."}) {
    EXPECT_FALSE(is_left_out(name, *config)) << name;
  }
}

}  // namespace
}  // namespace kvasir::model::config_test
