// map_rope: rope_parameters, or rope_theta and rope_scaling, as GGUF's keys and tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "io/hf_metadata.h"

namespace kvasir::io {
namespace {

using simdjson::dom::object;

constexpr std::int64_t kMaxRotaryDim = 1 << 16;

// One object of RoPE's parameters; without one every value is absent.
class RopeObject {
 public:
  RopeObject(const HfConfig& config, std::optional<object> json) : config_(&config), json_(json) {}

  bool is_there() const { return json_.has_value(); }

  std::optional<simdjson::dom::element> find(std::string_view key) const {
    simdjson::dom::element value;
    if (!json_ || json_->at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }
  Result<std::optional<double>> number(std::string_view key) const {
    const auto value = find(key);
    if (!value) return std::nullopt;
    double number = 0.0;
    if (value->get_double().get(number) == simdjson::SUCCESS && std::isfinite(number)) return number;
    return bad(key, fmt::format("must be a number, is {}", printable(simdjson::minify(*value))));
  }
  // An absent value, or one that is not above 0, is an error.
  Result<double> positive(std::string_view key) const {
    KVASIR_TRY(const auto value, number(key));
    if (value && *value > 0.0) return *value;
    return bad(key, value ? fmt::format("must be above 0, is {}", *value) : "is missing");
  }
  // "default" where none is given.
  Result<std::string_view> type() const {
    std::string_view type = "default";
    for (const char* key : {"rope_type", "type"}) {
      const auto value = find(key);
      if (!value) continue;
      if (value->get_string().get(type) == simdjson::SUCCESS) return type;
      return bad(key, fmt::format("must be a string, is {}", printable(simdjson::minify(*value))));
    }
    return type;
  }
  Result<std::optional<object>> inner(std::string_view key) const {
    const auto value = find(key);
    object json;
    if (!value) return std::nullopt;
    if (value->get_object().get(json) == simdjson::SUCCESS) return json;
    return bad(key, fmt::format("must be an object, is {}", printable(simdjson::minify(*value))));
  }
  std::unexpected<Error> bad(std::string_view key, std::string_view problem) const {
    return config_->bad(fmt::format("RoPE: {}", key), problem);
  }

 private:
  const HfConfig* config_;
  std::optional<object> json_;
};

// The parameters of layers that see everything, and those of window layers where they have their own.
struct RopeObjects {
  RopeObject full, local;
};

// The object under the key; one without members counts as absent.
Result<std::optional<object>> object_at(const HfConfig& config, std::string_view key) {
  const auto value = config.find(key);
  object found;
  if (!value) return std::nullopt;
  if (value->get_object().get(found) != simdjson::SUCCESS) {
    return config.bad(key, fmt::format("must be an object, is {}", printable(simdjson::minify(*value))));
  }
  return found.size() == 0 ? std::nullopt : std::optional(found);
}

// Whether every value of the older object is in the newer one, where the type is called rope_type.
bool says_nothing_else(const object& older, const object& newer) {
  for (const auto [key, value] : older) {
    simdjson::dom::element other;
    const bool is_there = newer.at_key(key).get(other) == simdjson::SUCCESS ||
                          (key == "type" && newer.at_key("rope_type").get(other) == simdjson::SUCCESS);
    if (!is_there || simdjson::minify(other) != simdjson::minify(value)) return false;
  }
  return true;
}

// The name that newer files use, or that of older ones. A file may have both, for readers of either age.
Result<std::optional<object>> find_object(const HfConfig& config) {
  KVASIR_TRY(const auto parameters, object_at(config, "rope_parameters"));
  KVASIR_TRY(const auto scaling, object_at(config, "rope_scaling"));
  if (!parameters || !scaling) return parameters ? parameters : scaling;
  if (says_nothing_else(*scaling, *parameters)) return parameters;
  return config.bad("rope_scaling", fmt::format("is {}, and rope_parameters is {}: which one counts is not known",
                                                printable(simdjson::minify(*scaling)), printable(simdjson::minify(*parameters))));
}

// Parameters by kind of layer are those of layers that see everything, and of window layers.
Status check_kinds(const HfConfig& config, const object& whole) {
  for (const auto [key, value] : whole) {
    const bool is_known = key == "full_attention" || key == "sliding_attention";
    if (value.is_object() && !is_known) {
      return config.bad(fmt::format("RoPE: {}", printable(key)), "is no kind of layers, known are full_attention and sliding_attention");
    }
  }
  return {};
}

Result<RopeObjects> find_objects(const HfConfig& config) {
  KVASIR_TRY(const std::optional<object> json, find_object(config));
  if (json) KVASIR_CHECKED(check_kinds(config, *json));
  const RopeObject whole(config, json);
  KVASIR_TRY(const auto full, whole.inner("full_attention"));
  KVASIR_TRY(const auto local, whole.inner("sliding_attention"));
  if (!full && !local) return RopeObjects{whole, RopeObject(config, std::nullopt)};
  if (!full) return whole.bad("full_attention", "is missing beside sliding_attention");
  return RopeObjects{RopeObject(config, full), RopeObject(config, local)};
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

class RopeMapper {
 public:
  RopeMapper(const HfConfig& config, const HfMapping& mapping, const HfRopeSizes& sizes, HfMetadata& metadata)
      : config_(config), mapping_(mapping), sizes_(sizes), metadata_(metadata) {}

  Status map() {
    KVASIR_TRY(const RopeObjects objects, find_objects(config_));
    const auto& [full, local] = objects;
    KVASIR_TRY(theta_, theta(full, mapping_.full_theta_key, mapping_.defaults.rope_theta));
    put("rope.freq_base", theta_);
    if (mapping_.defaults.rope_local_theta > 0.0) {
      KVASIR_TRY(const double base, theta(local, mapping_.local_theta_key, mapping_.defaults.rope_local_theta));
      put("rope.freq_base_swa", base);
    }
    type_ = mapping_.defaults.rope_type;
    if (full.is_there()) {
      KVASIR_TRY(type_, full.type());
    }
    KVASIR_CHECKED(map_rotary_dim(full));
    if (sizes_.local_head_dim > 0) {
      KVASIR_TRY(const std::int64_t turned, rotary_dim(local, sizes_.local_head_dim, 1.0));
      put("rope.dimension_count_swa", turned);
    }
    KVASIR_TRY(const auto temperature, full.number("llama_4_scaling_beta"));
    if (temperature) put("attention.temperature_scale", *temperature);
    if (mapping_.rope_by_halves) put("rope.style", std::string("halves"));
    KVASIR_CHECKED(refuse_local_scaling(local));
    return map_scaling(full);
  }

 private:
  void put(std::string_view key, MetadataValue value) {
    metadata_.values.insert_or_assign(fmt::format("{}.{}", mapping_.architecture, key), std::move(value));
  }

  // No published model scales positions in its window layers.
  Status refuse_local_scaling(const RopeObject& local) const {
    KVASIR_TRY(const std::string_view type, local.type());
    if (type == "default") return {};
    return config_.bad("RoPE of sliding_attention: rope_type",
                       fmt::format("is {}, known is default", printable(std::string(type))));
  }

  Result<double> theta(const RopeObject& rope, std::string_view old_key, double of_class) const {
    KVASIR_TRY(auto value, rope.number("rope_theta"));
    if (!value) {
      KVASIR_TRY(value, config_.find_number(old_key));
    }
    if (!value) {
      KVASIR_TRY(value, config_.find_number("rotary_emb_base"));  // of GPT-NeoX
    }
    const double theta = value.value_or(of_class);
    if (theta > 0.0) return theta;
    return config_.bad(old_key, fmt::format("must be above 0, is {}", theta));
  }

  Status map_rotary_dim(const RopeObject& rope) {
    if (type_ == "proportional") {  // all of a head, though most pairs stand still
      KVASIR_TRY(rotary_dim_, rotary_dim_of(sizes_.head_dim, 1.0));
      return {};
    }
    KVASIR_TRY(rotary_dim_, rotary_dim(rope, sizes_.head_dim, mapping_.defaults.rotary_factor));
    if (rotary_dim_ < sizes_.head_dim) put("rope.dimension_count", rotary_dim_);
    return {};
  }

  Result<double> rotary_share(const RopeObject& rope, double of_class) const {
    KVASIR_TRY(auto factor, rope.number("partial_rotary_factor"));
    if (!factor) {
      KVASIR_TRY(factor, config_.find_number("partial_rotary_factor"));
    }
    if (!factor) {
      KVASIR_TRY(factor, config_.find_number("rotary_pct"));
    }
    const double share = factor.value_or(of_class);
    if (share > 0.0 && share <= 1.0) return share;
    return config_.bad("partial_rotary_factor", fmt::format("must be above 0 and at most 1, is {}", share));
  }

  // Elements of a head that turn.
  Result<std::int64_t> rotary_dim(const RopeObject& rope, std::int64_t head_dim, double of_class) const {
    KVASIR_TRY(const double share, rotary_share(rope, of_class));
    return rotary_dim_of(head_dim, share);
  }

  Result<std::int64_t> rotary_dim_of(std::int64_t head_dim, double share) const {
    const auto turned = static_cast<std::int64_t>(static_cast<double>(head_dim) * share);
    if (turned >= 2 && turned <= kMaxRotaryDim) return turned;
    return config_.bad("head_dim", fmt::format("leaves {} elements to RoPE, allowed are 2 to {}", turned,
                                               kMaxRotaryDim));
  }

  Status map_scaling(const RopeObject& rope) {
    const std::string_view type = type_;
    if (type == "default" || type == "mrope") return {};  // M-RoPE turns text as RoPE does
    if (type == "linear") {
      KVASIR_TRY(const double factor, rope.positive("factor"));
      put("rope.scaling.type", std::string("linear"));
      put("rope.scaling.factor", factor);
      return {};
    }
    if (type == "llama3") return map_llama3(rope);
    if (type == "yarn") return map_yarn(rope);
    if (type == "longrope" || type == "su") return map_longrope(rope);
    if (type == "proportional") return map_proportional(rope);
    return rope.bad("rope_type",
                    fmt::format("is {}, known are default, linear, llama3, yarn, longrope and proportional",
                                printable(type)));
  }

  Result<double> original_length(const RopeObject& rope) const {
    KVASIR_TRY(auto length, rope.number("original_max_position_embeddings"));
    if (!length) {
      KVASIR_TRY(length, config_.find_number("original_max_position_embeddings"));
    }
    const double tokens = length.value_or(static_cast<double>(sizes_.max_positions));
    if (tokens >= 1.0) return tokens;
    return rope.bad("original_max_position_embeddings", fmt::format("must be at least 1, is {}", tokens));
  }

  // GGUF has the divisor of each frequency (Llama 3.1's rule by wavelength), in single precision.
  Status map_llama3(const RopeObject& rope) {
    KVASIR_TRY(const double factor, rope.positive("factor"));
    KVASIR_TRY(const double low, rope.positive("low_freq_factor"));
    KVASIR_TRY(const double high, rope.positive("high_freq_factor"));
    KVASIR_TRY(const double original, original_length(rope));
    if (!(high > low)) return rope.bad("high_freq_factor", fmt::format("must be above {}, is {}", low, high));
    std::vector<float> divisors;
    for (std::int64_t i = 0; i < rotary_dim_ / 2; ++i) {
      const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim_);
      const double wavelength = 2.0 * std::numbers::pi * std::pow(theta_, exponent);
      double divisor = factor;
      if (wavelength < original / high) {
        divisor = 1.0;
      } else if (wavelength <= original / low) {
        const double smooth = (original / wavelength - low) / (high - low);
        divisor = 1.0 / ((1.0 - smooth) / factor + smooth);
      }
      divisors.push_back(static_cast<float>(divisor));
    }
    put("rope.scaling.type", std::string("llama3"));
    metadata_.vectors.emplace_back("rope_freqs.weight", std::move(divisors));
    return {};
  }

  // The first pairs turn as those of a whole head do, and the others stand still: GGUF divides their frequencies by
  // 1e30 (Gemma 4).
  Status map_proportional(const RopeObject& rope) {
    constexpr float kStandsStill = 1e30f;
    KVASIR_TRY(const double share, rotary_share(rope, rope.is_there() ? 1.0 : mapping_.defaults.rotary_factor));
    KVASIR_TRY(const auto factor, rope.number("factor"));
    if (factor && !(*factor > 0.0)) return rope.bad("factor", fmt::format("must be above 0, is {}", *factor));
    const auto num_turning =
        static_cast<std::size_t>(std::floor(share * static_cast<double>(sizes_.head_dim) / 2.0));
    std::vector<float> divisors(static_cast<std::size_t>(sizes_.head_dim / 2), kStandsStill);
    std::fill_n(divisors.begin(), num_turning, static_cast<float>(factor.value_or(1.0)));
    metadata_.vectors.emplace_back("rope_freqs.weight", std::move(divisors));
    return {};
  }

  // GGUF's factor on cos and sin multiplies YaRN's own 0.1 ln(factor) + 1; a folder has the product.
  Status map_yarn(const RopeObject& rope) {
    KVASIR_TRY(const double original, original_length(rope));
    KVASIR_TRY(const auto given, rope.number("factor"));
    const double factor = given.value_or(static_cast<double>(sizes_.max_positions) / original);
    if (!(factor > 0.0)) return rope.bad("factor", fmt::format("must be above 0, is {}", factor));
    put("rope.scaling.type", std::string("yarn"));
    put("rope.scaling.factor", factor);
    put("rope.scaling.original_context_length", static_cast<std::int64_t>(original));
    KVASIR_TRY(const auto fast, rope.number("beta_fast"));
    KVASIR_TRY(const auto slow, rope.number("beta_slow"));
    put("rope.scaling.yarn_beta_fast", fast.value_or(0.0) == 0.0 ? 32.0 : *fast);
    put("rope.scaling.yarn_beta_slow", slow.value_or(0.0) == 0.0 ? 1.0 : *slow);
    KVASIR_TRY(auto attention, rope.number("attention_factor"));
    KVASIR_TRY(const auto mscale, rope.number("mscale"));
    KVASIR_TRY(const auto mscale_all, rope.number("mscale_all_dim"));
    if (!attention && mscale.value_or(0.0) != 0.0 && mscale_all.value_or(0.0) != 0.0) {
      attention = yarn_scale(factor, *mscale) / yarn_scale(factor, *mscale_all);
    }
    if (attention) put("rope.scaling.attn_factor", *attention / yarn_scale(factor, 1.0));
    if (const auto truncate = rope.find("truncate"); truncate) {
      bool flag = true;
      if (truncate->get_bool().get(flag) == simdjson::SUCCESS) put("rope.scaling.yarn_truncate", flag);
    }
    return {};
  }

  Status map_longrope(const RopeObject& rope) {
    KVASIR_TRY(const double original, original_length(rope));
    for (const auto& [key, tensor] : {std::pair("short_factor", "rope_factors_short.weight"),
                                      std::pair("long_factor", "rope_factors_long.weight")}) {
      KVASIR_TRY(std::vector<float> factors, read_factors(rope, key));
      metadata_.vectors.emplace_back(tensor, std::move(factors));
    }
    KVASIR_TRY(const auto given, rope.number("factor"));
    KVASIR_TRY(auto attention, rope.number("attention_factor"));
    const double factor = given.value_or(static_cast<double>(sizes_.max_positions) / original);
    if (!attention) attention = factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
    put("rope.scaling.type", std::string("longrope"));
    put("rope.scaling.original_context_length", static_cast<std::int64_t>(original));
    put("rope.scaling.attn_factor", *attention);
    return {};
  }

  Result<std::vector<float>> read_factors(const RopeObject& rope, std::string_view key) const {
    const auto value = rope.find(key);
    simdjson::dom::array array;
    if (!value || value->get_array().get(array) != simdjson::SUCCESS) return rope.bad(key, "must be an array");
    std::vector<float> factors;
    for (const simdjson::dom::element item : array) {
      double factor = 0.0;
      if (item.get_double().get(factor) != simdjson::SUCCESS || !(factor > 0.0)) {
        return rope.bad(key, fmt::format("must hold numbers above 0, holds {}", printable(simdjson::minify(item))));
      }
      factors.push_back(static_cast<float>(factor));
    }
    if (std::ssize(factors) == rotary_dim_ / 2) return factors;
    return rope.bad(key, fmt::format("must have {} numbers, half of those that RoPE turns, has {}", rotary_dim_ / 2,
                                     factors.size()));
  }

  const HfConfig& config_;
  const HfMapping& mapping_;
  HfRopeSizes sizes_;
  HfMetadata& metadata_;
  double theta_ = 0.0;
  std::string_view type_;
  std::int64_t rotary_dim_ = 0;
};

}  // namespace

Status map_rope(const HfConfig& config, const HfMapping& mapping, const HfRopeSizes& sizes, HfMetadata& metadata) {
  return RopeMapper(config, mapping, sizes, metadata).map();
}

}  // namespace kvasir::io
