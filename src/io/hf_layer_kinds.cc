// map_layer_kinds: heads of layers with a window and of those without, and widths of layers that share keys and values.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "io/hf_metadata.h"

namespace kvasir::io {
namespace {

constexpr std::int64_t kMaxHeadSize = 1 << 16;

// The heads of one layer.
struct Heads {
  std::int64_t head_dim = 0;
  std::int64_t num_kv_heads = 0;
  bool operator==(const Heads&) const = default;
};

class LayerKinds {
 public:
  LayerKinds(const HfConfig& config, const HfMapping& mapping, const HfLayerSizes& sizes)
      : config_(config), mapping_(mapping), sizes_(sizes) {}

  // The heads of layers without a window.
  Result<Heads> global_heads() const {
    if (config_.find("per_layer_config")) return listed_heads();
    Heads heads = {.head_dim = mapping_.defaults.global_head_dim, .num_kv_heads = sizes_.num_kv_heads};
    KVASIR_TRY(heads.head_dim, size_of(config_.find("global_head_dim"), "global_head_dim", heads.head_dim));
    KVASIR_TRY(const auto has_own_count, config_.find_bool("attention_k_eq_v"));
    if (!has_own_count.value_or(false)) return heads;
    constexpr const char* kCount = "num_global_key_value_heads";
    KVASIR_TRY(heads.num_kv_heads, size_of(config_.find(kCount), kCount, heads.num_kv_heads));
    return heads;
  }

  // The last layers, which compute no keys and values of their own.
  Result<std::int64_t> num_shared_layers() const {
    KVASIR_TRY(const auto count, config_.find_int("num_kv_shared_layers"));
    const auto num_layers = std::ssize(sizes_.is_local);
    if (count.value_or(0) >= 0 && count.value_or(0) < num_layers) return count.value_or(0);
    return config_.bad("num_kv_shared_layers", fmt::format("must be between 0 and {}, is {}", num_layers - 1, *count));
  }

 private:
  // Values by layer, where they are not those of all: {"5": {"head_dim": 512}, ..}.
  Result<Heads> listed_heads() const {
    const Heads local = {.head_dim = sizes_.head_dim, .num_kv_heads = sizes_.num_kv_heads};
    std::optional<Heads> global;
    for (std::size_t i = 0; i < sizes_.is_local.size(); ++i) {
      KVASIR_TRY(const Heads heads, heads_of(i, local));
      if (!sizes_.is_local[i] && !global) global = heads;
      if (heads == (sizes_.is_local[i] ? local : *global)) continue;
      return config_.bad("per_layer_config", fmt::format("must have the same heads in all layers of a kind, layer {} "
                                                         "has others",
                                                         i));
    }
    return global.value_or(local);
  }

  Result<Heads> heads_of(std::size_t layer, Heads heads) const {
    simdjson::dom::object layers, values;
    if (config_.find("per_layer_config")->get_object().get(layers) != simdjson::SUCCESS) {
      return config_.bad("per_layer_config", "must be an object");
    }
    if (layers.at_key(std::to_string(layer)).get(values) != simdjson::SUCCESS) return heads;
    KVASIR_TRY(heads.head_dim, size_of(find_in(values, "head_dim"), "head_dim", heads.head_dim));
    KVASIR_TRY(heads.num_kv_heads,
               size_of(find_in(values, "num_key_value_heads"), "num_key_value_heads", heads.num_kv_heads));
    return heads;
  }

  static std::optional<simdjson::dom::element> find_in(const simdjson::dom::object& object, std::string_view key) {
    simdjson::dom::element value;
    if (object.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }

  Result<std::int64_t> size_of(const std::optional<simdjson::dom::element>& json, std::string_view key,
                               std::int64_t fallback) const {
    std::int64_t size = 0;
    if (!json) return fallback;
    if (json->get_int64().get(size) == simdjson::SUCCESS && size >= 1 && size <= kMaxHeadSize) return size;
    return config_.bad(key, fmt::format("must be between 1 and {}, is {}", kMaxHeadSize,
                                        printable(simdjson::minify(*json))));
  }

  const HfConfig& config_;
  const HfMapping& mapping_;
  const HfLayerSizes& sizes_;
};

}  // namespace

Result<std::int64_t> map_layer_kinds(const HfConfig& config, const HfMapping& mapping, const HfLayerSizes& sizes,
                                     HfMetadata& metadata) {
  const auto put = [&](std::string_view key, MetadataValue value) {
    metadata.values.insert_or_assign(fmt::format("{}.{}", mapping.architecture, key), std::move(value));
  };
  KVASIR_TRY(const auto directions, config.find_string("use_bidirectional_attention"));
  if (directions == "all") {
    return config.bad("use_bidirectional_attention", "is all, and attention to later tokens is not supported");
  }
  const LayerKinds kinds(config, mapping, sizes);
  KVASIR_TRY(const Heads global, kinds.global_heads());
  put("attention.key_length", global.head_dim);
  put("attention.value_length", global.head_dim);
  put("attention.key_length_swa", sizes.head_dim);
  put("attention.value_length_swa", sizes.head_dim);
  if (global.num_kv_heads != sizes.num_kv_heads) {
    std::vector<std::int64_t> counts;
    for (const bool is_local : sizes.is_local) counts.push_back(is_local ? sizes.num_kv_heads : global.num_kv_heads);
    put("attention.head_count_kv", std::move(counts));
  }
  KVASIR_TRY(const std::int64_t num_shared, kinds.num_shared_layers());
  put("attention.shared_kv_layers", num_shared);
  KVASIR_TRY(const auto is_wider, config.find_bool("use_double_wide_mlp"));
  if (is_wider.value_or(false)) {
    std::vector<std::int64_t> widths(sizes.is_local.size(), sizes.intermediate_size);
    std::fill_n(widths.rbegin(), num_shared, 2 * sizes.intermediate_size);
    put("feed_forward_length", std::move(widths));
  }
  return global.head_dim;
}

}  // namespace kvasir::io
