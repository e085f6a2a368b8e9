#include "io/hf_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "io/sentence_modules.h"

namespace kvasir::io {
namespace {

using simdjson::dom::element;

constexpr std::int64_t kMaxSize = 1 << 28;
constexpr std::size_t kMaxListLength = 1 << 16;

// Keys of config.json that match a pattern of those that change numbers, and do not.
constexpr std::string_view kHarmlessKeys[] = {"rope_scaling", "initializer_scale", "time_step_limit"};

bool may_change_numbers(std::string_view key) {
  constexpr std::string_view kEndings[] = {"_multiplier", "_scale", "_scaling"};
  constexpr std::string_view kParts[] = {"softcap", "limit", "clip_qkv"};
  return std::ranges::any_of(kEndings, [key](std::string_view ending) { return key.ends_with(ending); }) ||
         std::ranges::any_of(kParts, [key](std::string_view part) { return key.find(part) != key.npos; });
}

// Null, false, and the factor 1 leave every number as it is.
bool is_neutral(const element& value) {
  double number = 0.0;
  bool flag = true;
  return value.is_null() || (value.get_bool().get(flag) == simdjson::SUCCESS && !flag) ||
         (value.get_double().get(number) == simdjson::SUCCESS && number == 1.0);
}

// Numbers become one type, as in Metadata. Nothing: of mixed or other types.
std::optional<MetadataValue> list_value(const simdjson::dom::array& array) {
  std::vector<std::int64_t> ints;
  std::vector<double> doubles;
  std::vector<bool> flags;
  if (array.size() > kMaxListLength) return std::nullopt;
  for (const element item : array) {
    if (std::int64_t number = 0; item.get_int64().get(number) == simdjson::SUCCESS) ints.push_back(number);
    if (double number = 0.0; item.get_double().get(number) == simdjson::SUCCESS) doubles.push_back(number);
    if (bool flag = false; item.get_bool().get(flag) == simdjson::SUCCESS) flags.push_back(flag);
  }
  const std::size_t size = array.size();
  if (ints.size() == size) return MetadataValue(std::move(ints));
  if (doubles.size() == size) return MetadataValue(std::move(doubles));
  if (flags.size() == size) return MetadataValue(std::move(flags));
  return std::nullopt;
}

std::optional<MetadataValue> plain_value(const element& json) {
  if (bool flag = false; json.get_bool().get(flag) == simdjson::SUCCESS) return flag;
  if (std::int64_t number = 0; json.get_int64().get(number) == simdjson::SUCCESS) return number;
  if (double number = 0.0; json.get_double().get(number) == simdjson::SUCCESS) return number;
  if (std::string_view text; json.get_string().get(text) == simdjson::SUCCESS) return std::string(text);
  if (simdjson::dom::array array; json.get_array().get(array) == simdjson::SUCCESS) return list_value(array);
  return std::nullopt;
}

class ConfigMapper {
 public:
  ConfigMapper(const HfConfig& config, const HfMapping& mapping, std::vector<Error>& faults)
      : config_(config), mapping_(mapping), faults_(faults) {}

  // What later parts build upon ends it where it has a fault.
  HfMetadata map() {
    metadata_.values["general.architecture"] = std::string(mapping_.architecture);
    passes(check_activation());
    passes(check_dense_layers());
    check_unknown_keys();
    if (!passes(map_sizes()) || !passes(map_heads()) || !passes(map_rope_layers())) return std::move(metadata_);
    passes(map_window());
    if (!passes(map_kinds())) return std::move(metadata_);
    for (const HfKey& key : mapping_.keys) passes(map_key(key));
    passes(map_rope(config_, mapping_, {head_dim_, max_positions_, local_head_dim_}, metadata_));
    return std::move(metadata_);
  }

 private:
  bool passes(const Status& status) {
    if (!status) faults_.push_back(status.error());
    return status.has_value();
  }

  void put(std::string_view key, MetadataValue value) {
    metadata_.values.insert_or_assign(fmt::format("{}.{}", mapping_.architecture, key), std::move(value));
  }

  Status check_activation() const {
    for (const char* key : {"hidden_activation", "hidden_act"}) {
      KVASIR_TRY(const auto name, config_.find_string(key));
      if (!name) continue;
      const bool is_silu = mapping_.activation == "silu" && *name == "swish";
      if (*name == mapping_.activation || is_silu) return {};
      return config_.bad(key, fmt::format("must be {} in a {}, is {}", mapping_.activation, mapping_.architecture,
                                          printable(*name)));
    }
    return {};
  }

  // Layers without experts among others that have them.
  Status check_dense_layers() const {
    const auto json = config_.find("mlp_only_layers");
    simdjson::dom::array layers;
    if (!json || (json->get_array().get(layers) == simdjson::SUCCESS && layers.size() == 0)) return {};
    return config_.bad("mlp_only_layers", fmt::format("must be empty, is {}", printable(simdjson::minify(*json))));
  }

  void check_unknown_keys() {
    for (const auto [name, value] : config_.text()) {
      const std::string_view key = name;
      if (!may_change_numbers(key) || is_neutral(value)) continue;
      const bool is_known = std::ranges::find(mapping_.keys, key, &HfKey::config) != mapping_.keys.end() ||
                            std::ranges::find(kHarmlessKeys, key) != std::end(kHarmlessKeys);
      if (is_known) continue;
      faults_.push_back(config_.bad(key, fmt::format("is {}, and Kvasir does not know it in a {}: it may change every number",
                                                     printable(simdjson::minify(value)), mapping_.architecture))
                            .error());
    }
  }

  // A size above 0; `fallback` where the file says nothing.
  Result<std::int64_t> size_of(std::string_view key, std::int64_t fallback) const {
    KVASIR_TRY(const auto value, config_.find_int(key));
    const std::int64_t size = value.value_or(fallback);
    if (size >= 1 && size <= kMaxSize) return size;
    return value ? config_.bad(key, fmt::format("must be between 1 and {}, is {}", kMaxSize, size))
                 : config_.bad(key, "is missing");
  }

  Status map_sizes() {
    const HfDefaults& usual = mapping_.defaults;
    KVASIR_TRY(hidden_size_, size_of("hidden_size", usual.hidden_size));
    KVASIR_TRY(num_layers_, size_of("num_hidden_layers", usual.num_hidden_layers));
    KVASIR_TRY(max_positions_, size_of("max_position_embeddings", usual.max_position_embeddings));
    put("embedding_length", hidden_size_);
    put("block_count", num_layers_);
    put("context_length", max_positions_);
    if (!put_list("intermediate_size", "feed_forward_length")) {
      KVASIR_TRY(intermediate_size_, size_of("intermediate_size", usual.intermediate_size));
      put("feed_forward_length", intermediate_size_);
    }
    KVASIR_TRY(const auto eps, config_.find_number(mapping_.norm_eps_key));
    put(mapping_.norm_eps_gguf, eps.value_or(usual.norm_eps));
    return {};
  }

  // A value for each layer, as some families have.
  bool put_list(std::string_view key, std::string_view gguf) {
    const auto json = config_.find(key);
    simdjson::dom::array array;
    if (!json || json->get_array().get(array) != simdjson::SUCCESS) return false;
    auto list = list_value(array);
    if (!list) return false;
    put(gguf, std::move(*list));
    return true;
  }

  Status map_heads() {
    const HfDefaults& usual = mapping_.defaults;
    KVASIR_TRY(const std::int64_t heads, size_of("num_attention_heads", usual.num_attention_heads));
    put("attention.head_count", heads);
    if (!put_list("num_key_value_heads", "attention.head_count_kv")) {
      const std::int64_t of_class = usual.num_key_value_heads > 0 ? usual.num_key_value_heads : heads;
      KVASIR_TRY(num_kv_heads_,
                 size_of("num_key_value_heads", config_.is_null("num_key_value_heads") ? heads : of_class));
      put("attention.head_count_kv", num_kv_heads_);
    }
    const std::int64_t of_hidden = hidden_size_ / heads;
    const bool has_class_size = usual.head_dim > 0 && !config_.is_null("head_dim");
    KVASIR_TRY(head_dim_, size_of("head_dim", has_class_size ? usual.head_dim : of_hidden));
    put("attention.key_length", head_dim_);
    put("attention.value_length", head_dim_);
    return {};
  }

  // For each layer whether RoPE turns its heads.
  Status map_rope_layers() {
    if (mapping_.defaults.no_rope_layer_interval == 0) return {};
    KVASIR_CHECKED(check_listable());
    KVASIR_TRY(const auto interval, config_.find_int("no_rope_layer_interval"));
    const std::int64_t period = interval.value_or(mapping_.defaults.no_rope_layer_interval);
    if (period < 1) return config_.bad("no_rope_layer_interval", fmt::format("must be at least 1, is {}", period));
    for (std::int64_t i = 0; i < num_layers_; ++i) turns_.push_back((i + 1) % period != 0);
    if (const auto json = config_.find("no_rope_layers")) KVASIR_CHECKED(read_rope_layers(*json));
    put("rope.layers", turns_);
    return {};
  }

  // 1 stands for a layer with RoPE, whatever the key is called.
  Status read_rope_layers(const element& json) {
    constexpr const char* kKey = "no_rope_layers";
    simdjson::dom::array array;
    if (json.get_array().get(array) != simdjson::SUCCESS) return config_.bad(kKey, "must be an array");
    turns_.clear();
    for (const element item : array) {
      std::int64_t number = -1;
      if (bool flag = false; item.get_bool().get(flag) == simdjson::SUCCESS) number = flag ? 1 : 0;
      if (item.is_int64()) number = item.get_int64().value_unsafe();
      if (number != 0 && number != 1) {
        return config_.bad(kKey, fmt::format("must hold 0 and 1, holds {}", printable(simdjson::minify(item))));
      }
      turns_.push_back(number == 1);
    }
    if (std::ssize(turns_) == num_layers_) return {};
    return config_.bad(kKey, fmt::format("must have an entry for each of {} layers, has {}", num_layers_, turns_.size()));
  }

  // Whether a list may have an entry for each layer.
  Status check_listable() const {
    constexpr auto kMaxLayers = static_cast<std::int64_t>(kMaxListLength);
    if (num_layers_ <= kMaxLayers) return {};
    return config_.bad("num_hidden_layers", fmt::format("must be at most {}, is {}", kMaxLayers, num_layers_));
  }

  // The window of attention, and which layers have it.
  Status map_window() {
    const HfDefaults& usual = mapping_.defaults;
    KVASIR_TRY(const auto is_used, config_.find_bool("use_sliding_window"));
    if (!is_used.value_or(usual.use_sliding_window)) return {};
    const std::string_view key = mapping_.window_key;
    KVASIR_TRY(const auto window, config_.find_int(key));
    const std::int64_t tokens = window.value_or(config_.is_null(key) ? 0 : usual.sliding_window);
    if (tokens < 0 || tokens > kMaxSize) {
      return config_.bad(key, fmt::format("must be between 0 and {}, is {}", kMaxSize, tokens));
    }
    if (tokens == 0) return {};
    KVASIR_TRY(auto is_local, read_layer_types());
    if (!is_local) {
      KVASIR_TRY(is_local, usual_windows());
    }
    if (is_local && std::ranges::find(*is_local, true) == is_local->end()) return {};
    put("attention.sliding_window", tokens);
    if (is_local) {
      put("attention.sliding_window_pattern", *is_local);
      return {};
    }
    KVASIR_TRY(auto period, config_.find_int("sliding_window_pattern"));
    if (!period) {
      KVASIR_TRY(period, config_.find_int("_sliding_window_pattern"));
    }
    const std::int64_t layers = period.value_or(usual.sliding_window_pattern);
    if (layers != 0) put("attention.sliding_window_pattern", layers);
    return {};
  }

  // By the family's rule; nothing when it is a period.
  Result<std::optional<std::vector<bool>>> usual_windows() const {
    const HfWindows rule = mapping_.defaults.windows;
    if (rule == HfWindows::kByPeriod) return std::nullopt;
    KVASIR_CHECKED(check_listable());
    KVASIR_TRY(const auto found, config_.find_int("max_window_layers"));
    const std::int64_t border = found.value_or(mapping_.defaults.max_window_layers);
    std::vector<bool> is_local;
    for (std::int64_t i = 0; i < num_layers_; ++i) {
      is_local.push_back(rule == HfWindows::kAll || (rule == HfWindows::kUpper && i >= border) ||
                         (rule == HfWindows::kEvenLower && i % 2 == 0 && i < border) ||
                         (rule == HfWindows::kWithoutRope && !turns_[static_cast<std::size_t>(i)]));
    }
    return is_local;
  }

  // Layers of two kinds, with heads of their own.
  Status map_kinds() {
    if (mapping_.defaults.global_head_dim == 0) return {};
    KVASIR_CHECKED(check_listable());
    KVASIR_TRY(const auto listed, read_layer_types());
    std::vector<bool> is_local = listed.value_or(std::vector<bool>());
    for (std::int64_t i = std::ssize(is_local); i < num_layers_; ++i) {
      is_local.push_back((i + 1) % mapping_.defaults.sliding_window_pattern != 0);
    }
    is_local.back() = false;  // whatever the file says
    put("attention.sliding_window_pattern", is_local);
    KVASIR_TRY(const std::int64_t global_head_dim,
               map_layer_kinds(config_, mapping_, {std::move(is_local), head_dim_, num_kv_heads_, intermediate_size_},
                               metadata_));
    local_head_dim_ = head_dim_;
    head_dim_ = global_head_dim;
    return {};
  }

  // For each layer whether it has the window; nothing when the file does not say.
  Result<std::optional<std::vector<bool>>> read_layer_types() const {
    const auto json = config_.find("layer_types");
    if (!json) return std::nullopt;
    simdjson::dom::array array;
    if (json->get_array().get(array) != simdjson::SUCCESS) return config_.bad("layer_types", "must be an array");
    std::vector<bool> is_local;
    for (const element item : array) {
      std::string_view type;
      const bool is_text = item.get_string().get(type) == simdjson::SUCCESS;
      if (!is_text || (type != "sliding_attention" && type != "full_attention")) {
        return config_.bad("layer_types", fmt::format("knows sliding_attention and full_attention, has {}",
                                                      printable(simdjson::minify(item))));
      }
      is_local.push_back(type == "sliding_attention");
    }
    if (std::ssize(is_local) == num_layers_) return is_local;
    return config_.bad("layer_types",
                       fmt::format("must have an entry for each of {} layers, has {}", num_layers_, is_local.size()));
  }

  Status map_key(const HfKey& key) {
    if (key.value == HfValue::kMustBe) return check_value(key);
    if (key.gguf.empty()) return {};
    const auto json = config_.find(key.config);
    std::optional<MetadataValue> value;
    if (json) {
      value = plain_value(*json);
      if (!value) {
        return config_.bad(key.config, fmt::format("has the value {}, of a type that is not read here",
                                                   printable(simdjson::minify(*json))));
      }
    } else if (const auto usual = config_.is_null(key.config) ? key.of_null : key.fallback) {
      value = *usual;
    }
    if (!value) return {};
    if (key.value != HfValue::kAsIs) {
      KVASIR_TRY(value, converted(key, *value));
    }
    put(key.gguf, std::move(*value));
    return {};
  }

  Status check_value(const HfKey& key) const {
    const auto json = config_.find(key.config);
    double number = 0.0;
    bool flag = false;
    if (!json) return {};
    if (json->get_bool().get(flag) == simdjson::SUCCESS) number = flag ? 1.0 : 0.0;
    const bool is_number = json->get_double().get(number) == simdjson::SUCCESS || json->is_bool();
    if (is_number && number == key.fallback) return {};
    return config_.bad(key.config, fmt::format("must be {} in a {}, is {}", key.fallback.value_or(0.0),
                                               mapping_.architecture, printable(simdjson::minify(*json))));
  }

  Result<std::optional<MetadataValue>> converted(const HfKey& key, const MetadataValue& value) const {
    if (key.value == HfValue::kPooling) return pooling_of(key, value);
    const auto* as_double = std::get_if<double>(&value);
    const auto* as_int = std::get_if<std::int64_t>(&value);
    const double number = as_double != nullptr ? *as_double : as_int != nullptr ? static_cast<double>(*as_int) : 0.0;
    if (key.value == HfValue::kPlusOne && number >= 0.0 && number <= static_cast<double>(kMaxSize)) {
      return std::optional<MetadataValue>(static_cast<std::int64_t>(number) + 1);
    }
    if (!(number > 0.0)) return config_.bad(key.config, "must be a number above 0");
    return std::optional<MetadataValue>(key.value == HfValue::kReciprocal ? 1.0 / number : 1.0 / std::sqrt(number));
  }

  Result<std::optional<MetadataValue>> pooling_of(const HfKey& key, const MetadataValue& value) const {
    const auto* name = std::get_if<std::string>(&value);
    if (name != nullptr && *name == "mean") {
      return std::optional<MetadataValue>(static_cast<std::int64_t>(PoolingKind::kMean));
    }
    if (name != nullptr && *name == "cls") {
      return std::optional<MetadataValue>(static_cast<std::int64_t>(PoolingKind::kFirst));
    }
    return config_.bad(key.config, "must be mean or cls");
  }

  const HfConfig& config_;
  const HfMapping& mapping_;
  std::vector<Error>& faults_;
  HfMetadata metadata_;
  std::int64_t hidden_size_ = 0, num_layers_ = 0, max_positions_ = 0, intermediate_size_ = 0;
  std::int64_t num_kv_heads_ = 0, head_dim_ = 0, local_head_dim_ = 0;
  std::vector<bool> turns_;  // by layer; empty: the family turns all
};

}  // namespace

HfMetadata describe_config(const HfConfig& config, const HfMapping& mapping, std::vector<Error>& faults) {
  return ConfigMapper(config, mapping, faults).map();
}

Result<HfMetadata> map_config(const HfConfig& config, const HfMapping& mapping) {
  std::vector<Error> faults;
  HfMetadata metadata = describe_config(config, mapping, faults);
  if (!faults.empty()) return std::unexpected(std::move(faults.front()));
  return metadata;
}

}  // namespace kvasir::io
