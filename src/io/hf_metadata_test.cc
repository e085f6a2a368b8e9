#include "io/hf_metadata.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kvasir::io::hf_metadata_test {
namespace {

constexpr HfKey kKeys[] = {
    {.config = "query_scalar", .gguf = "attention.scale", .fallback = 256.0, .value = HfValue::kInverseSqrt},
    {.config = "logits_scaling", .gguf = "logit_scale", .value = HfValue::kReciprocal},
    {.config = "known_limit", .gguf = ""},
    {.config = "known_softcap", .gguf = "softcap", .fallback = 30.0, .of_null = 0.0},
    {.config = "fixed_limit", .gguf = "", .fallback = 7.0, .value = HfValue::kMustBe},
};
const HfMapping kMapping = {.model_types = {"test"},
                            .architecture = "t",
                            .defaults = {.hidden_size = 64,
                                         .intermediate_size = 96,
                                         .num_hidden_layers = 4,
                                         .num_attention_heads = 4,
                                         .num_key_value_heads = 2,
                                         .max_position_embeddings = 512,
                                         .norm_eps = 1e-5,
                                         .rope_theta = 50000.0,
                                         .sliding_window = 32,
                                         .use_sliding_window = false},
                            .keys = kKeys,
                            .rope_by_halves = true};
const HfMapping kWindowed = {.model_types = {"windowed"},
                             .architecture = "t",
                             .defaults = {.hidden_size = 64,
                                          .intermediate_size = 96,
                                          .num_hidden_layers = 4,
                                          .num_attention_heads = 4,
                                          .max_position_embeddings = 512,
                                          .rope_theta = 1e6,
                                          .rope_local_theta = 1e4,
                                          .sliding_window = 32,
                                          .sliding_window_pattern = 2}};

const HfMapping kTwoKinds = {.model_types = {"two"},
                             .architecture = "t",
                             .defaults = {.hidden_size = 64,
                                          .intermediate_size = 96,
                                          .num_hidden_layers = 4,
                                          .num_attention_heads = 4,
                                          .num_key_value_heads = 2,
                                          .head_dim = 16,
                                          .max_position_embeddings = 512,
                                          .rope_theta = 1e6,
                                          .rope_local_theta = 1e4,
                                          .rotary_factor = 0.25,
                                          .rope_type = "proportional",
                                          .sliding_window = 32,
                                          .sliding_window_pattern = 2,
                                          .global_head_dim = 32}};

// The configuration with these members beside the type.
Result<HfMetadata> map(std::string_view members, const HfMapping& mapping = kMapping) {
  std::string text = R"({"model_type":"test")";
  if (!members.empty()) text.append(",").append(members);
  KVASIR_TRY(const HfConfig config, HfConfig::parse(text + "}", "c"));
  return map_config(config, mapping);
}

std::string error_of(std::string_view members, const HfMapping& mapping = kMapping) {
  const auto mapped = map(members, mapping);
  return mapped ? "" : mapped.error().message;
}

double number(const HfMetadata& mapped, std::string_view key) {
  const Metadata metadata(mapped.values);
  const auto value = metadata.get_float("t." + std::string(key));
  EXPECT_TRUE(value) << value.error().message;
  return value.value_or(-1.0);
}

TEST(HfConfig, IsTheTextPartOfAModelThatSeesToo) {
  const auto config = HfConfig::parse(
      R"({"model_type":"outer","tie":true,"text_config":{"model_type":"inner","size":3,"none":null}})", "c");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->model_type(), "inner");
  EXPECT_EQ(config->find_int("size")->value(), 3);
  EXPECT_FALSE(config->find("tie"));
  EXPECT_TRUE(config->find_anywhere("tie"));
  EXPECT_FALSE(config->find("none"));
  EXPECT_TRUE(config->is_null("none"));
  EXPECT_EQ(config->find_number("tie")->has_value(), false);
  EXPECT_EQ(HfConfig::parse("{}", "c").error().message,
            "c: model_type is missing, so the architecture is not known");
  EXPECT_EQ(HfConfig::parse("[]", "c").error().message, "c: must hold a JSON object");
}

TEST(HfConfig, RefusesOtherTypes) {
  const auto config = HfConfig::parse(R"({"model_type":"a","size":"3","half":2.5})", "c");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find_int("size").error().message, "c: size must be a number, is \"3\"");
  EXPECT_EQ(config->find_int("half").error().message, "c: half must be a whole number, is 2.5");
  EXPECT_EQ(config->find_bool("half").error().message, "c: half must be true or false, is 2.5");
  EXPECT_EQ(config->find_string("half").error().message, "c: half must be a string, is 2.5");
}

TEST(MapConfig, TakesTheClassDefaultsOfAbsentKeys) {
  const auto mapped = map("");
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(std::get<std::string>(mapped->values.at("general.architecture")), "t");
  EXPECT_EQ(number(*mapped, "embedding_length"), 64);
  EXPECT_EQ(number(*mapped, "feed_forward_length"), 96);
  EXPECT_EQ(number(*mapped, "block_count"), 4);
  EXPECT_EQ(number(*mapped, "context_length"), 512);
  EXPECT_EQ(number(*mapped, "attention.head_count_kv"), 2);
  EXPECT_EQ(number(*mapped, "attention.key_length"), 16);
  EXPECT_EQ(number(*mapped, "attention.layer_norm_rms_epsilon"), 1e-5);
  EXPECT_EQ(number(*mapped, "rope.freq_base"), 50000.0);
  EXPECT_EQ(number(*mapped, "attention.scale"), 1.0 / 16.0);
  EXPECT_EQ(std::get<std::string>(mapped->values.at("t.rope.style")), "halves");
  EXPECT_FALSE(mapped->values.contains("t.logit_scale"));
  EXPECT_FALSE(mapped->values.contains("t.attention.sliding_window"));
}

TEST(MapConfig, TakesWhatTheFileSays) {
  const auto mapped = map(R"("hidden_size":128,"head_dim":24,"num_key_value_heads":null,"rope_theta":1000,
                             "logits_scaling":8,"rms_norm_eps":0.001,"partial_rotary_factor":0.5)");
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(number(*mapped, "embedding_length"), 128);
  EXPECT_EQ(number(*mapped, "attention.value_length"), 24);
  EXPECT_EQ(number(*mapped, "attention.head_count_kv"), 4);
  EXPECT_EQ(number(*mapped, "rope.freq_base"), 1000);
  EXPECT_EQ(number(*mapped, "rope.dimension_count"), 12);
  EXPECT_EQ(number(*mapped, "logit_scale"), 0.125);
  EXPECT_EQ(number(*mapped, "attention.layer_norm_rms_epsilon"), 0.001);
}

TEST(MapConfig, KnowsNullFromAbsence) {
  EXPECT_EQ(number(*map(""), "softcap"), 30.0);
  EXPECT_EQ(number(*map(R"("known_softcap":null)"), "softcap"), 0.0);
  EXPECT_EQ(number(*map(R"("known_softcap":5)"), "softcap"), 5.0);
  EXPECT_FALSE(map(R"("query_scalar":null)")->values.contains("t.attention.scale"));
}

TEST(MapConfig, RefusesSizesThatAreNone) {
  EXPECT_EQ(error_of(R"("hidden_size":0)"), "c: hidden_size must be between 1 and 268435456, is 0");
  EXPECT_EQ(error_of(R"("num_attention_heads":-4)"), "c: num_attention_heads must be between 1 and 268435456, is -4");
  EXPECT_EQ(error_of(R"("hidden_size":2)"), "c: head_dim is missing");
}

TEST(MapConfig, RefusesAnotherActivation) {
  EXPECT_EQ(error_of(R"("hidden_act":"relu")"), "c: hidden_act must be silu in a t, is relu");
  EXPECT_EQ(error_of(R"("hidden_act":"swish")"), "");
}

TEST(MapConfig, RefusesUnknownKeysThatMayChangeNumbers) {
  EXPECT_EQ(error_of(R"("embedding_multiplier":12)"),
            "c: embedding_multiplier is 12, and Kvasir does not know it in a t: it may change every number");
  EXPECT_EQ(error_of(R"("swiglu_limit":7.0)"),
            "c: swiglu_limit is 7.0, and Kvasir does not know it in a t: it may change every number");
  EXPECT_EQ(error_of(R"("attn_logit_softcapping":50.0)"),
            "c: attn_logit_softcapping is 50.0, and Kvasir does not know it in a t: it may change every number");
  EXPECT_EQ(error_of(R"("embedding_multiplier":1.0,"attn_logit_softcapping":null,"known_limit":7,"use_cache":true)"), "");
}

TEST(MapConfig, RefusesAnotherValueThanTheOneThatIsComputed) {
  EXPECT_EQ(error_of(R"("fixed_limit":6.5)"), "c: fixed_limit must be 7 in a t, is 6.5");
  EXPECT_EQ(error_of(R"("fixed_limit":7)"), "");
}

TEST(MapConfig, HasAWindowOnlyWhereItIsUsed) {
  EXPECT_FALSE(map(R"("sliding_window":64)")->values.contains("t.attention.sliding_window"));
  EXPECT_EQ(number(*map(R"("sliding_window":64,"use_sliding_window":true)"), "attention.sliding_window"), 64);
  EXPECT_EQ(number(*map("", kWindowed), "attention.sliding_window"), 32);
  EXPECT_EQ(number(*map("", kWindowed), "attention.sliding_window_pattern"), 2);
  EXPECT_FALSE(map(R"("sliding_window":null)", kWindowed)->values.contains("t.attention.sliding_window"));
}

TEST(MapConfig, TakesLayerTypesBeforeThePattern) {
  const auto mapped = map(R"("sliding_window_pattern":3,"layer_types":["full_attention","sliding_attention",
                             "sliding_attention","full_attention"])",
                          kWindowed);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(std::get<std::vector<bool>>(mapped->values.at("t.attention.sliding_window_pattern")),
            (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(error_of(R"("layer_types":["full_attention"])", kWindowed),
            "c: layer_types must have an entry for each of 4 layers, has 1");
  EXPECT_EQ(error_of(R"("layer_types":["linear_attention"])", kWindowed),
            "c: layer_types knows sliding_attention and full_attention, has \"linear_attention\"");
  EXPECT_FALSE(map(R"("layer_types":["full_attention","full_attention","full_attention","full_attention"])", kWindowed)
                   ->values.contains("t.attention.sliding_window"));
}

std::vector<bool> flags(const HfMetadata& mapped, std::string_view key) {
  const auto found = mapped.values.find("t." + std::string(key));
  return found == mapped.values.end() ? std::vector<bool>() : std::get<std::vector<bool>>(found->second);
}

TEST(MapConfig, KnowsTheFamilysRuleForItsWindows) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  HfMapping mapping = kMapping;
  const auto windows = [&](HfWindows rule, std::string_view members) {
    mapping.defaults.windows = rule;
    const auto mapped = map(R"("use_sliding_window":true)" + std::string(members), mapping);
    return mapped ? flags(*mapped, kKey) : std::vector<bool>();
  };
  EXPECT_EQ(windows(HfWindows::kAll, ""), (std::vector{true, true, true, true}));
  EXPECT_EQ(windows(HfWindows::kUpper, R"(,"max_window_layers":3)"), (std::vector{false, false, false, true}));
  EXPECT_EQ(windows(HfWindows::kUpper, ""), std::vector<bool>());  // 28, behind the last
  EXPECT_EQ(windows(HfWindows::kEvenLower, R"(,"max_window_layers":2)"), (std::vector{true, false, false, false}));
  mapping.defaults.no_rope_layer_interval = 4;
  EXPECT_EQ(windows(HfWindows::kWithoutRope, R"(,"no_rope_layers":[0,1,1,0])"), (std::vector{true, false, false, true}));
  EXPECT_EQ(windows(HfWindows::kWithoutRope, R"(,"layer_types":["sliding_attention","full_attention",
                                                 "full_attention","full_attention"])"),
            (std::vector{true, false, false, false}));
}

TEST(MapConfig, SaysWhichLayersTurn) {
  HfMapping mapping = kMapping;
  mapping.defaults.no_rope_layer_interval = 4;
  EXPECT_EQ(flags(*map("", mapping), "rope.layers"), (std::vector{true, true, true, false}));
  EXPECT_EQ(flags(*map(R"("no_rope_layer_interval":2)", mapping), "rope.layers"), (std::vector{true, false, true, false}));
  EXPECT_EQ(flags(*map(R"("no_rope_layers":[1,0,true,true],"no_rope_layer_interval":2)", mapping), "rope.layers"),
            (std::vector{true, false, true, true}));
  EXPECT_TRUE(flags(*map(R"("no_rope_layers":[1,0,1,1])"), "rope.layers").empty());
  EXPECT_EQ(error_of(R"("no_rope_layers":[1,0])", mapping), "c: no_rope_layers must have an entry for each of 4 layers, has 2");
  EXPECT_EQ(error_of(R"("no_rope_layers":[1,2,1,1])", mapping), "c: no_rope_layers must hold 0 and 1, holds 2");
  EXPECT_EQ(error_of(R"("no_rope_layers":7)", mapping), "c: no_rope_layers must be an array");
  EXPECT_EQ(error_of(R"("no_rope_layer_interval":0)", mapping), "c: no_rope_layer_interval must be at least 1, is 0");
}

TEST(MapRope, TakesTheNewObjectBeforeTheOldKeys) {
  EXPECT_EQ(number(*map(R"("rope_theta":1,"rope_parameters":{"rope_theta":2000.0,"rope_type":"default"})"),
                   "rope.freq_base"),
            2000.0);
  const auto mapped = map(R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":3e6},
                             "sliding_attention":{"rope_type":"default","rope_theta":5e3}})",
                          kWindowed);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(number(*mapped, "rope.freq_base"), 3e6);
  EXPECT_EQ(number(*mapped, "rope.freq_base_swa"), 5e3);
  EXPECT_EQ(number(*mapped, "rope.scaling.factor"), 8.0);
  const auto old = map(R"("rope_theta":2e6,"rope_local_base_freq":7e3)", kWindowed);
  EXPECT_EQ(number(*old, "rope.freq_base"), 2e6);
  EXPECT_EQ(number(*old, "rope.freq_base_swa"), 7e3);
}

TEST(MapRope, GivesLlama3sDivisors) {
  const auto mapped = map(R"("head_dim":128,"rope_theta":500000.0,"rope_scaling":{"rope_type":"llama3","factor":8.0,
      "low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":8192})");
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_EQ(mapped->vectors.size(), 1u);
  const auto& [name, divisors] = mapped->vectors.front();
  EXPECT_EQ(name, "rope_freqs.weight");
  ASSERT_EQ(divisors.size(), 64u);
  EXPECT_EQ(divisors.front(), 1.0f);
  EXPECT_EQ(divisors.back(), 8.0f);
  EXPECT_GT(divisors[32], 1.0f);  // wavelength 4443, between 2048 and 8192
  EXPECT_LT(divisors[32], 8.0f);
}

TEST(MapRope, GivesYarnsFactorsInGgufsTerms) {
  const auto mapped = map(R"("rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":128,
      "attention_factor":1.5,"beta_fast":16,"truncate":false})");
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(number(*mapped, "rope.scaling.original_context_length"), 128);
  EXPECT_EQ(number(*mapped, "rope.scaling.yarn_beta_fast"), 16);
  EXPECT_EQ(number(*mapped, "rope.scaling.yarn_beta_slow"), 1);
  EXPECT_DOUBLE_EQ(number(*mapped, "rope.scaling.attn_factor"), 1.5 / (0.1 * std::log(4.0) + 1.0));
  EXPECT_EQ(std::get<bool>(mapped->values.at("t.rope.scaling.yarn_truncate")), false);
  const auto from_lengths = map(R"("rope_scaling":{"rope_type":"yarn","factor":null,
      "original_max_position_embeddings":128})");
  EXPECT_EQ(number(*from_lengths, "rope.scaling.factor"), 4.0);
}

TEST(MapRope, GivesLongropesLists) {
  const auto mapped = map(R"("original_max_position_embeddings":128,"rope_scaling":{"type":"su",
      "short_factor":[1,1,1,1,1,1,1,1],"long_factor":[1,2,3,4,5,6,7,8]})");
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_EQ(mapped->vectors.size(), 2u);
  EXPECT_EQ(mapped->vectors[1].second.back(), 8.0f);
  EXPECT_DOUBLE_EQ(number(*mapped, "rope.scaling.attn_factor"), std::sqrt(1.0 + std::log(4.0) / std::log(128.0)));
  EXPECT_EQ(error_of(R"("rope_scaling":{"type":"longrope","short_factor":[1],"long_factor":[1]})"),
            "c: RoPE: short_factor must have 8 numbers, half of those that RoPE turns, has 1");
}

TEST(MapRope, RefusesKindsThatItDoesNotKnow) {
  EXPECT_EQ(error_of(R"("rope_scaling":{"type":"dynamic","factor":2})"),
            "c: RoPE: rope_type is dynamic, known are default, linear, llama3, yarn, longrope and proportional");
  EXPECT_EQ(error_of(R"("rope_scaling":{"type":"linear"})"), "c: RoPE: factor is missing");
  EXPECT_EQ(error_of(R"("rope_theta":0)"), "c: rope_theta must be above 0, is 0");
  EXPECT_EQ(error_of(R"("partial_rotary_factor":2)"), "c: partial_rotary_factor must be above 0 and at most 1, is 2");
}

std::vector<std::int64_t> ints(const HfMetadata& mapped, std::string_view key) {
  const Metadata metadata(mapped.values);
  return metadata.find_ints("t." + std::string(key)).value().value_or(std::vector<std::int64_t>());
}

TEST(MapRope, RefusesToScaleThePositionsOfWindowLayers) {
  const std::string members = R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0},
                                                    "sliding_attention":{"rope_type":")";
  EXPECT_EQ(error_of(members + R"(default","rope_theta":5000.0}})", kWindowed), "");
  EXPECT_EQ(error_of(members + R"(yarn","factor":4.0}})", kWindowed),
            "c: RoPE of sliding_attention: rope_type is yarn, known is default");
}

TEST(MapRope, RefusesParametersThatAreNone) {
  EXPECT_EQ(error_of(R"("rope_parameters":5)"), "c: rope_parameters must be an object, is 5");
  EXPECT_EQ(error_of(R"("rope_parameters":[])"), "c: rope_parameters must be an object, is []");
  EXPECT_EQ(error_of(R"("rope_scaling":"linear")"), "c: rope_scaling must be an object, is \"linear\"");
  EXPECT_EQ(error_of(R"("rope_parameters":{"rope_type":5})"), "c: RoPE: rope_type must be a string, is 5");
  EXPECT_EQ(error_of(R"("rope_parameters":{"full_attention":5})"), "c: RoPE: full_attention must be an object, is 5");
  EXPECT_EQ(error_of(R"("rope_parameters":null,"rope_scaling":{"rope_type":null})"), "");
}

TEST(MapLayerKinds, GiveGlobalLayersHeadsOfTheirOwn) {
  const auto mapped = map(R"("attention_k_eq_v":true,"num_global_key_value_heads":1)", kTwoKinds);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(number(*mapped, "attention.key_length"), 32);
  EXPECT_EQ(number(*mapped, "attention.value_length_swa"), 16);
  EXPECT_EQ(ints(*mapped, "attention.head_count_kv"), (std::vector<std::int64_t>{2, 1, 2, 1}));
  EXPECT_EQ(ints(*mapped, "attention.sliding_window_pattern"), (std::vector<std::int64_t>{1, 0, 1, 0}));
  EXPECT_EQ(number(*mapped, "rope.dimension_count_swa"), 16);
  ASSERT_EQ(mapped->vectors.size(), 1u);
  const std::vector<float>& divisors = mapped->vectors[0].second;
  EXPECT_EQ(mapped->vectors[0].first, "rope_freqs.weight");
  ASSERT_EQ(divisors.size(), 16u);
  EXPECT_EQ(divisors[3], 1.0f);
  EXPECT_EQ(divisors[4], 1e30f);
  // Without the flag the number of KV heads is void.
  const auto without = map(R"("num_global_key_value_heads":1)", kTwoKinds);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(number(*without, "attention.head_count_kv"), 2);
}

TEST(MapLayerKinds, TakeAListByLayer) {
  const auto mapped = map(R"("per_layer_config":{"1":{"head_dim":8},"3":{"head_dim":8}})", kTwoKinds);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(number(*mapped, "attention.key_length"), 8);
  EXPECT_EQ(error_of(R"("per_layer_config":{"1":{"head_dim":8}})", kTwoKinds),
            "c: per_layer_config must have the same heads in all layers of a kind, layer 3 has others");
  EXPECT_EQ(error_of(R"("per_layer_config":{"0":{"head_dim":8}})", kTwoKinds),
            "c: per_layer_config must have the same heads in all layers of a kind, layer 0 has others");
  EXPECT_EQ(error_of(R"("global_head_dim":0)", kTwoKinds), "c: global_head_dim must be between 1 and 65536, is 0");
}

TEST(MapLayerKinds, MakeLayersThatShareWider) {
  const auto mapped = map(R"("num_kv_shared_layers":2,"use_double_wide_mlp":true)", kTwoKinds);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(number(*mapped, "attention.shared_kv_layers"), 2);
  EXPECT_EQ(ints(*mapped, "feed_forward_length"), (std::vector<std::int64_t>{96, 96, 192, 192}));
  EXPECT_EQ(error_of(R"("num_kv_shared_layers":4)", kTwoKinds),
            "c: num_kv_shared_layers must be between 0 and 3, is 4");
  EXPECT_EQ(error_of(R"("use_bidirectional_attention":"all")", kTwoKinds),
            "c: use_bidirectional_attention is all, and attention to later tokens is not supported");
}

}  // namespace
}  // namespace kvasir::io::hf_metadata_test
