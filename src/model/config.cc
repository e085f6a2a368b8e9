#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "backend/kv_layout.h"
#include "base/check.h"
#include "base/printable.h"
#include "model/arch/registry.h"
#include "model/known_keys.h"

namespace kvasir::model {
namespace {

// Far above any published decoder, far below what could overflow a product of two of them.
constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxHeads = 4096;
using backend::kMaxHeadDim;  // what the attention kernels hold on their stack
constexpr std::int64_t kMaxContext = 1 << 28;

Result<std::int32_t> get_int32(const io::Metadata& metadata, const std::string& key, std::int64_t max) {
  KVASIR_TRY(const std::int64_t value, metadata.get_int(key, 1, max));
  return static_cast<std::int32_t>(value);
}

Result<std::int32_t> get_int32_or(const io::Metadata& metadata, const std::string& key, std::int64_t max,
                                  std::int32_t fallback) {
  KVASIR_TRY(const auto value, metadata.find_int(key, 1, max));
  return value ? static_cast<std::int32_t>(*value) : fallback;
}

std::unexpected<Error> wrong_rope(const std::string& prefix, std::string_view key, std::string_view limit,
                                  double value) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("metadata {}rope.{}: must be {}, is {}", prefix, key, limit, value));
}

// Attention grows with the context that YaRN stretches to: 0.1 ln(factor) more of cos and sin each.
double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1.0 ? 1.0 : 0.1 * multiplier * std::log(factor) + 1.0;
}

constexpr const char* kOriginalContext = "rope.scaling.original_context_length";

Status read_yarn(const io::Metadata& metadata, const std::string& prefix, double factor, std::int32_t context_tokens,
                 RopeConfig& rope) {
  if (factor == 0.0 || factor == 1.0) return {};  // turns and scales nothing
  if (factor < 1.0) return wrong_rope(prefix, "scaling.factor", "at least 1", factor);
  rope.scaling = RopeScaling::kYarn;
  rope.factor = factor;
  KVASIR_TRY(rope.original_context_tokens,
             get_int32_or(metadata, prefix + kOriginalContext, kMaxContext, context_tokens));
  const std::pair<const char*, double*> betas[] = {{"scaling.yarn_beta_fast", &rope.yarn_beta_fast},
                                                   {"scaling.yarn_beta_slow", &rope.yarn_beta_slow}};
  for (const auto& [key, value] : betas) {
    KVASIR_TRY(const auto beta, metadata.find_float(prefix + "rope." + key));
    if (beta && *beta <= 0.0) return wrong_rope(prefix, key, "above 0", *beta);
    *value = beta.value_or(*value);
  }
  KVASIR_TRY(const auto mix, metadata.find_float(prefix + "rope.scaling.yarn_ext_factor"));
  if (mix && *mix != 1.0 && *mix >= 0.0) {
    return wrong_rope(prefix, "scaling.yarn_ext_factor", "1 or absent", *mix);
  }
  KVASIR_TRY(const auto rounds, metadata.find_bool(prefix + "rope.scaling.yarn_truncate"));
  rope.yarn_rounds = rounds.value_or(true);
  KVASIR_TRY(const auto multiplier, metadata.find_float(prefix + "rope.scaling.yarn_log_multiplier"));
  rope.attention_factor = yarn_magnitude(factor, 1.0) / yarn_magnitude(factor, multiplier.value_or(0.0));
  KVASIR_TRY(const auto attention_factor, metadata.find_float(prefix + "rope.scaling.yarn_attn_factor"));
  if (attention_factor.value_or(0.0) > 0.0) rope.attention_factor = *attention_factor;
  return {};
}

// Its divisors are tensors, and some writers name no type.
Status read_longrope(const io::Metadata& metadata, const std::string& prefix, std::int32_t context_tokens,
                     RopeConfig& rope) {
  rope.scaling = RopeScaling::kLongRope;
  KVASIR_TRY(rope.original_context_tokens, get_int32(metadata, prefix + kOriginalContext, kMaxContext));
  const double factor = static_cast<double>(context_tokens) / rope.original_context_tokens;
  if (factor > 1.0) {
    rope.attention_factor = std::sqrt(1.0 + std::log(factor) / std::log(rope.original_context_tokens));
  }
  return {};
}

// A factor without a type is linear, and 0 means none, as llama.cpp reads them.
Status read_linear(const std::string& prefix, double factor, RopeConfig& rope) {
  if (factor < 0.0) return wrong_rope(prefix, "scaling.factor", "above 0", factor);
  if (factor != 0.0 && factor != 1.0) {
    rope.scaling = RopeScaling::kLinear;
    rope.factor = factor;
  }
  return {};
}

Status read_rope_scaling(const io::WeightSource& source, const std::string& prefix,
                         std::int32_t context_tokens, RopeConfig& rope) {
  const io::Metadata& metadata = source.metadata();
  KVASIR_TRY(const auto found_type, metadata.find_string(prefix + "rope.scaling.type"));
  const std::string type = found_type.value_or("");
  KVASIR_TRY(auto factor, metadata.find_float(prefix + "rope.scaling.factor"));
  // Files from before rope.scaling.* carry a bare linear factor.
  if (!factor) {
    KVASIR_TRY(factor, metadata.find_float(prefix + "rope.scale_linear"));
  }
  KVASIR_TRY(const auto attention_factor, metadata.find_float(prefix + "rope.scaling.attn_factor"));
  if (attention_factor && *attention_factor < 0.0) {
    return wrong_rope(prefix, "scaling.attn_factor", "above 0", *attention_factor);
  }
  const bool has_attention_factor = attention_factor.value_or(0.0) != 0.0;
  if (type == "longrope" || type == "su" || source.find("rope_factors_long.weight") != nullptr) {
    KVASIR_CHECKED(read_longrope(metadata, prefix, context_tokens, rope));
    if (has_attention_factor) rope.attention_factor = *attention_factor;
    return {};
  }
  if (type == "yarn") {
    KVASIR_CHECKED(read_yarn(metadata, prefix, factor.value_or(0.0), context_tokens, rope));
  } else if (type.empty() || type == "linear") {
    KVASIR_CHECKED(read_linear(prefix, factor.value_or(0.0), rope));
  } else if (type != "none" && type != "llama3") {  // llama3's factors are the tensor rope_freqs.weight
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}rope.scaling.type: '{}' is not supported (none, linear, llama3, "
                    "yarn, longrope are)",
                    prefix, printable(type)));
  }
  if (has_attention_factor) rope.attention_factor *= *attention_factor;
  return {};
}

// Files of pairs and of halves differ in the order of a head's rows. The family knows, unless the file says.
Status read_rope_style(const io::Metadata& metadata, const std::string& prefix, ModelConfig& config) {
  KVASIR_TRY(const auto style, metadata.find_string(prefix + "rope.style"));
  if (!style) return {};
  if (*style != "halves" && *style != "pairs") {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}rope.style: must be halves or pairs, is '{}'", prefix, printable(*style)));
  }
  config.rope_style = *style == "pairs" ? backend::RopeStyle::kInterleaved : backend::RopeStyle::kHalves;
  return {};
}

Status read_rope(const io::WeightSource& source, const std::string& prefix, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  KVASIR_TRY(auto base, metadata.find_float(prefix + "rope.freq_base"));
  if (!base) {
    KVASIR_TRY(base, metadata.find_float(prefix + "rope.global.freq_base"));  // Ollama's name
  }
  config.rope.freq_base = base.value_or(10000.0);
  if (config.rope.freq_base <= 0.0) {
    return make_error(ErrorKind::kBadFile, fmt::format("metadata {}rope.freq_base: must be above 0, is {}",
                                                       prefix, config.rope.freq_base));
  }
  KVASIR_TRY(config.rope.rotary_dim,
             get_int32_or(metadata, prefix + "rope.dimension_count", kMaxHeadDim, config.head_dim));
  if (config.rope.rotary_dim % 2 != 0 || config.rope.rotary_dim > config.head_dim) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}rope.dimension_count: must be even and at most the head dimension {}, is {}",
                    prefix, config.head_dim, config.rope.rotary_dim));
  }
  KVASIR_CHECKED(read_rope_style(metadata, prefix, config));
  return read_rope_scaling(source, prefix, config.context_length_tokens, config.rope);
}

// A size of every layer, from 1 to `max`: one number, or one for each. `sizes` stays empty where all are equal.
// Returns the greatest; `fallback` where the file has none.
Result<std::int32_t> read_layer_sizes(const io::Metadata& metadata, const std::string& key, std::int64_t max,
                                      std::int32_t fallback, std::int32_t num_layers,
                                      std::vector<std::int32_t>& sizes) {
  if (!metadata.is_array(key)) return get_int32_or(metadata, key, max, fallback);
  KVASIR_TRY(auto values, metadata.find_ints(key));
  if (std::ranges::adjacent_find(*values, std::ranges::not_equal_to()) == values->end()) {
    return get_int32_or(metadata, key, max, fallback);
  }
  if (std::ssize(*values) < num_layers) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}: must have an entry for each of the {} layers, has {}", key,
                                  num_layers, values->size()));
  }
  values->resize(static_cast<std::size_t>(num_layers));
  for (const std::int64_t value : *values) {
    if (value < 1 || value > max) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("metadata {}: must be between 1 and {}, is {}", key, max, value));
    }
    sizes.push_back(static_cast<std::int32_t>(value));
  }
  return std::ranges::max(sizes);
}

// 0 is what writers put for "the usual".
Result<double> read_attention_scale(const io::Metadata& metadata, const std::string& prefix,
                                    std::int32_t head_dim) {
  KVASIR_TRY(const auto scale, metadata.find_float(prefix + "attention.scale"));
  if (scale.value_or(0.0) < 0.0) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}attention.scale: must be above 0, is {}", prefix, *scale));
  }
  return scale.value_or(0.0) > 0.0 ? *scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
}

Status read_heads(const io::Metadata& metadata, const std::string& prefix, ModelConfig& config) {
  KVASIR_TRY(config.num_heads, get_int32(metadata, prefix + "attention.head_count", kMaxHeads));
  KVASIR_TRY(config.num_kv_heads,
             read_layer_sizes(metadata, prefix + "attention.head_count_kv", kMaxHeads, config.num_heads,
                              config.num_layers, config.layer_kv_heads));
  std::vector<std::int32_t> counts = config.layer_kv_heads;
  counts.push_back(config.num_kv_heads);
  for (const std::int32_t count : counts) {
    if (config.num_heads % count == 0) continue;
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}attention.head_count: must be a multiple of head_count_kv {}, is {}", prefix,
                    count, config.num_heads));
  }
  KVASIR_TRY(config.head_dim, get_int32_or(metadata, prefix + "attention.key_length", kMaxHeadDim,
                                           config.hidden_size / config.num_heads));
  KVASIR_TRY(const std::int32_t value_dim,
             get_int32_or(metadata, prefix + "attention.value_length", kMaxHeadDim, config.head_dim));
  if (config.head_dim < 2 || config.head_dim % 2 != 0 || value_dim != config.head_dim) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}attention.key_length: must be even and equal value_length {}, is {}", prefix,
                    value_dim, config.head_dim));
  }
  KVASIR_TRY(const double scale, read_attention_scale(metadata, prefix, config.head_dim));
  config.attention_scale = static_cast<float>(scale);
  return {};
}

// Layers that predict further tokens follow the decoder's own, which do without them.
Status read_num_layers(const io::Metadata& metadata, const std::string& prefix, ModelConfig& config) {
  KVASIR_TRY(const std::int32_t num_blocks, get_int32(metadata, prefix + "block_count", kMaxLayers));
  KVASIR_TRY(const auto num_predicting,
             metadata.find_int(prefix + "nextn_predict_layers", 0, num_blocks - 1));
  config.num_predicting_layers = static_cast<std::int32_t>(num_predicting.value_or(0));
  config.num_layers = num_blocks - config.num_predicting_layers;
  return {};
}

// The epsilon of RMS norms, or of layer norms where the family has those.
Status read_norm_eps(const io::Metadata& metadata, const std::string& prefix, ModelConfig& config) {
  std::string key = prefix + "attention.layer_norm_rms_epsilon";
  if (metadata.find(key) == nullptr && metadata.find(prefix + "attention.layer_norm_epsilon") != nullptr) {
    key = prefix + "attention.layer_norm_epsilon";
  }
  KVASIR_TRY(const double eps, metadata.get_float(key));
  if (!(eps > 0.0 && eps < 1.0)) {
    return make_error(ErrorKind::kBadFile, fmt::format("metadata {}: must be in (0, 1), is {}", key, eps));
  }
  config.norm_eps = static_cast<float>(eps);
  return {};
}

// Factors and caps; 0 is what writers put for none.
Status read_scales(const io::Metadata& metadata, const std::string& prefix, ModelConfig& config) {
  const std::pair<const char*, float*> scales[] = {
      {"attn_logit_softcapping", &config.attention_softcap},
      {"final_logit_softcapping", &config.final_softcap},
      {"attention.temperature_scale", &config.temperature_scale},
      {"embedding_scale", &config.embedding_scale},
      {"residual_scale", &config.residual_scale},
      {"logit_scale", &config.logit_scale},
  };
  for (const auto& [key, scale] : scales) {
    KVASIR_TRY(const auto value, metadata.find_float(prefix + key));
    if (value.value_or(0.0) < 0.0) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("metadata {}{}: must be above 0, is {}", prefix, key, *value));
    }
    if (value.value_or(0.0) > 0.0) *scale = static_cast<float>(*value);
  }
  if (config.temperature_scale == 0.0f) return {};
  KVASIR_TRY(config.temperature_length_tokens,
             get_int32_or(metadata, prefix + "attention.temperature_length", kMaxContext,
                          std::max(1, config.rope.original_context_tokens)));
  return {};
}

Status read_vocab_size(const io::WeightSource& source, ModelConfig& config) {
  const TensorView* embedding = source.find("token_embd.weight");
  if (embedding == nullptr) return make_error(ErrorKind::kBadFile, "tensor token_embd.weight: missing");
  const std::int64_t num_rows = embedding->num_rows();
  if (num_rows > kMaxContext) {
    return make_error(ErrorKind::kBadFile, fmt::format("tensor token_embd.weight: at most {} rows, has {}",
                                                       kMaxContext, num_rows));
  }
  const io::Metadata& metadata = source.metadata();
  KVASIR_TRY(const auto* tokens, metadata.find_strings("tokenizer.ggml.tokens"));
  const bool has_tokens = tokens != nullptr && !tokens->empty();
  // A folder's tokenizer may know more tokens than the model has.
  KVASIR_TRY(const auto of_folder, metadata.find_int("tokenizer.num_tokens", 1, kMaxContext));
  const std::int64_t num_tokens =
      has_tokens ? std::ssize(*tokens) : std::min(of_folder.value_or(num_rows), num_rows);
  if (num_tokens > num_rows) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata tokenizer.ggml.tokens: at most as many as token_embd.weight has "
                                  "rows, {}, has {}",
                                  num_rows, num_tokens));
  }
  config.vocab_size = static_cast<std::int32_t>(num_rows);
  config.num_tokens = static_cast<std::int32_t>(num_tokens);
  return {};
}

// GGUF's numbers; 0 and absent: the file does not say.
Result<std::optional<Pooling>> read_pooling(const io::Metadata& metadata, const std::string& key) {
  constexpr Pooling kPoolings[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast,
                                   Pooling::kRank};
  KVASIR_TRY(const auto number, metadata.find_int(key, 0, std::ssize(kPoolings) - 1));
  if (number.value_or(0) == 0) return std::nullopt;
  return kPoolings[*number];
}

Status read_poolings(const io::WeightSource& source, const std::string& prefix, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  KVASIR_TRY(const auto pooling, read_pooling(metadata, prefix + "pooling_type"));
  KVASIR_TRY(const auto of_rank, read_pooling(metadata, prefix + "classifier.pooling_type"));
  const bool has_classifier = source.find("cls.output.weight") != nullptr;
  config.says_pooling = pooling.has_value();
  config.pooling = pooling.value_or(has_classifier ? Pooling::kRank : Pooling::kMean);
  if (!config.is_encoder) config.rank_pooling = Pooling::kLast;
  if (of_rank && *of_rank != Pooling::kRank) config.rank_pooling = *of_rank;
  return {};
}

}  // namespace

std::int32_t ModelConfig::max_q_size() const {
  std::int32_t most = 0;
  for (const LayerGroup& group : layer_groups) most = std::max(most, q_size_of(group));
  return most;
}

std::int32_t ModelConfig::max_kv_size() const {
  std::int32_t most = 0;
  for (const LayerGroup& group : layer_groups) most = std::max(most, kv_size_of(group));
  return most;
}

bool ModelConfig::can_run_layer_by_layer() const {
  const LayerGroup& first = layer_groups.front();
  const bool has_equal_kv = std::ranges::all_of(layer_groups, [&](const LayerGroup& group) {
    return num_kv_heads_of(group) == num_kv_heads_of(first) && head_dim_of(group) == head_dim_of(first);
  });
  return has_equal_kv && kv_layers.empty() && per_layer_size == 0;
}

std::int32_t ModelConfig::last_kv_layer() const {
  return kv_layers.empty() ? num_layers - 1 : std::ranges::max(kv_layers);
}

KvPlace ModelConfig::kv_place(std::int32_t layer) const {
  const std::int32_t owner = kv_layer(layer);
  const auto has_owner = [owner](const LayerGroup& group) {
    return std::ranges::binary_search(group.layers, owner);
  };
  const auto group = std::ranges::find_if(layer_groups, has_owner);
  CHECK(group != layer_groups.end());
  const auto in_group = std::ranges::lower_bound(group->layers, owner);
  return {.group = static_cast<std::int32_t>(group - layer_groups.begin()),
          .layer_in_group = static_cast<std::int32_t>(in_group - group->layers.begin())};
}

Result<ModelConfig> read_config(const io::WeightSource& source) {
  const io::Metadata& metadata = source.metadata();
  ModelConfig config;
  KVASIR_TRY(config.architecture, metadata.get_string("general.architecture"));
  const std::string prefix = config.architecture + ".";
  const auto name = metadata.find_string("general.name");
  config.name = name && !name->value_or("").empty() ? **name : config.architecture;
  KVASIR_CHECKED(read_num_layers(metadata, prefix, config));
  KVASIR_TRY(config.hidden_size, get_int32(metadata, prefix + "embedding_length", kMaxWidth));
  // Models of experts alone have none.
  KVASIR_TRY(config.intermediate_size,
             read_layer_sizes(metadata, prefix + "feed_forward_length", kMaxWidth, 0, config.num_layers,
                              config.layer_intermediate_sizes));
  KVASIR_TRY(config.context_length_tokens, get_int32(metadata, prefix + "context_length", kMaxContext));
  KVASIR_CHECKED(read_heads(metadata, prefix, config));
  KVASIR_CHECKED(read_rope(source, prefix, config));
  KVASIR_CHECKED(read_norm_eps(metadata, prefix, config));
  KVASIR_CHECKED(read_scales(metadata, prefix, config));
  KVASIR_CHECKED(read_vocab_size(source, config));
  KVASIR_TRY(const auto causal, metadata.find_bool(prefix + "attention.causal"));
  const Architecture* architecture = find_architecture(config.architecture);
  config.is_encoder = architecture != nullptr && architecture->is_encoder;
  if (causal.value_or(!config.is_encoder) == config.is_encoder) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}attention.causal: must be {} or absent, as this architecture {}",
                                  prefix, !config.is_encoder,
                                  config.is_encoder ? "attends to both sides" : "attends to earlier tokens"));
  }
  KVASIR_CHECKED(read_poolings(source, prefix, config));
  if (const KeyReport keys = check_keys(metadata); !keys.refused.empty()) {
    return make_error(ErrorKind::kBadFile, keys.refused.front());
  }
  LayerGroup everything;
  everything.layers.resize(static_cast<std::size_t>(config.num_layers));
  std::iota(everything.layers.begin(), everything.layers.end(), 0);
  config.layer_groups = {std::move(everything)};
  return config;
}

}  // namespace kvasir::model
