#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "backend/kv_layout.h"
#include "base/check.h"
#include "base/printable.h"
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

// A factor without a type is linear, and 0 means none, as llama.cpp reads them.
Status read_rope_scaling(const io::WeightSource& source, const std::string& prefix, RopeConfig& rope) {
  const io::Metadata& metadata = source.metadata();
  KVASIR_TRY(const auto type, metadata.find_string(prefix + "rope.scaling.type"));
  KVASIR_TRY(auto factor, metadata.find_float(prefix + "rope.scaling.factor"));
  // Files from before rope.scaling.* carry a bare linear factor.
  if (!factor) {
    KVASIR_TRY(factor, metadata.find_float(prefix + "rope.scale_linear"));
  }
  const double value = factor.value_or(0.0);
  if (!type || type->empty() || *type == "linear") {
    if (value < 0.0) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("metadata {}rope.scaling.factor: must be above 0, is {}", prefix, value));
    }
    if (value != 0.0 && value != 1.0) {
      rope.scaling = RopeScaling::kLinear;
      rope.factor = value;
    }
    return {};
  }
  if (*type == "none" || *type == "llama3") return {};  // llama3's factors are the tensor rope_freqs.weight
  // By a factor of 1 YaRN turns and scales nothing.
  if (*type == "yarn" && (value == 0.0 || value == 1.0)) return {};
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("metadata {}rope.scaling.type: '{}' is not supported (none, linear, llama3 are)", prefix,
                  printable(*type)));
}

// Files of pairs and of halves differ in the order of a head's rows. The family knows, unless the file says.
Status read_rope_style(const io::Metadata& metadata, const std::string& prefix, ModelConfig& config) {
  KVASIR_TRY(const auto style, metadata.find_string(prefix + "rope.style"));
  if (!style) return {};
  if (*style != "halves" && *style != "pairs") {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}rope.style: must be halves or pairs, is '{}'", prefix,
                                  printable(*style)));
  }
  config.rope_style = *style == "pairs" ? kernels::RopeStyle::kInterleaved : kernels::RopeStyle::kHalves;
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
  return read_rope_scaling(source, prefix, config.rope);
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
             get_int32_or(metadata, prefix + "attention.head_count_kv", kMaxHeads, config.num_heads));
  if (config.num_heads % config.num_kv_heads != 0) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}attention.head_count: must be a multiple of head_count_kv {}, is {}", prefix,
                    config.num_kv_heads, config.num_heads));
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

}  // namespace

KvPlace ModelConfig::kv_place(std::int32_t layer) const {
  const auto has_layer = [layer](const LayerGroup& group) {
    return std::ranges::binary_search(group.layers, layer);
  };
  const auto group = std::ranges::find_if(layer_groups, has_layer);
  CHECK(group != layer_groups.end());
  const auto in_group = std::ranges::lower_bound(group->layers, layer);
  return {.group = static_cast<std::int32_t>(group - layer_groups.begin()),
          .layer_in_group = static_cast<std::int32_t>(in_group - group->layers.begin())};
}

Status refuse_sliding_window(const io::WeightSource& source, const ModelConfig& config) {
  const std::string key = config.architecture + ".attention.sliding_window";
  KVASIR_TRY(const auto window,
             source.metadata().find_int(key, -1, std::numeric_limits<std::uint32_t>::max()));
  if (window.value_or(0) == -1) return {};  // none, as an unsigned -1 is
  if (window.value_or(0) == 0 || *window >= config.context_length_tokens) return {};
  return make_error(ErrorKind::kBadFile,
                    fmt::format("metadata {}: must be 0 or at least context_length {}, as sliding-window "
                                "attention is not supported for this architecture, is {}",
                                key, config.context_length_tokens, *window));
}

Result<ModelConfig> read_config(const io::WeightSource& source) {
  const io::Metadata& metadata = source.metadata();
  ModelConfig config;
  KVASIR_TRY(config.architecture, metadata.get_string("general.architecture"));
  const std::string prefix = config.architecture + ".";
  const auto name = metadata.find_string("general.name");
  config.name = name && !name->value_or("").empty() ? **name : config.architecture;
  KVASIR_TRY(config.num_layers, get_int32(metadata, prefix + "block_count", kMaxLayers));
  KVASIR_TRY(config.hidden_size, get_int32(metadata, prefix + "embedding_length", kMaxWidth));
  KVASIR_TRY(config.intermediate_size, get_int32(metadata, prefix + "feed_forward_length", kMaxWidth));
  KVASIR_TRY(config.context_length_tokens, get_int32(metadata, prefix + "context_length", kMaxContext));
  KVASIR_CHECKED(read_heads(metadata, prefix, config));
  KVASIR_CHECKED(read_rope(source, prefix, config));
  KVASIR_TRY(const double eps, metadata.get_float(prefix + "attention.layer_norm_rms_epsilon"));
  if (!(eps > 0.0 && eps < 1.0)) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}attention.layer_norm_rms_epsilon: must be in (0, 1), is {}", prefix, eps));
  }
  config.rms_norm_eps = static_cast<float>(eps);
  KVASIR_TRY(const auto experts, metadata.find_int(prefix + "expert_count", 0, kMaxWidth));
  if (experts.value_or(0) > 0) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}expert_count: mixture-of-experts models are not "
                                  "supported, the file has {} experts",
                                  prefix, *experts));
  }
  KVASIR_CHECKED(read_vocab_size(source, config));
  KVASIR_TRY(const auto causal, metadata.find_bool(prefix + "attention.causal"));
  if (!causal.value_or(true)) {
    return make_error(ErrorKind::kBadFile, fmt::format("metadata {}attention.causal: must be true or absent, "
                                                       "as attention to later tokens is not supported",
                                                       prefix));
  }
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
