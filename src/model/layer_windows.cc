#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/config.h"

namespace kvasir::model {
namespace {

// For each layer whether it looks at a window only. The file has a flag for each, or a period whose last
// layer sees all: 1 means that all do, 0 that none does.
Result<std::vector<bool>> read_window_layers(const io::Metadata& metadata, const WindowPattern& usual,
                                             std::int64_t window, const ModelConfig& config) {
  const std::string key = config.architecture + ".attention.sliding_window_pattern";
  std::vector<bool> is_local;
  if (metadata.is_array(key)) {
    KVASIR_TRY(const auto flags, metadata.find_ints(key));
    if (std::ssize(*flags) < config.num_layers) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("metadata {}: must have an entry for each of the {} layers, has {}", key,
                                    config.num_layers, flags->size()));
    }
    for (std::int32_t i = 0; i < config.num_layers; ++i) {
      is_local.push_back((*flags)[static_cast<std::size_t>(i)] != 0);
    }
    return is_local;
  }
  KVASIR_TRY(const auto pattern, metadata.find_int(key, 0, 1024));
  if (!pattern && usual.period == WindowPattern::kUnknown) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("metadata {}: missing, so nobody knows which layers see a window of {} tokens", key,
                    window));
  }
  const std::int64_t period = pattern.value_or(usual.period);
  const std::int64_t global = usual.first_sees_all ? 0 : period - 1;
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    is_local.push_back(period == 0 || i % period != global);
  }
  return is_local;
}

}  // namespace

Status split_windows(const io::WeightSource& source, const WindowPattern& pattern, ModelConfig& config) {
  const io::Metadata& metadata = source.metadata();
  const std::string key = config.architecture + ".attention.sliding_window";
  KVASIR_TRY(const auto found, metadata.find_int(key, -1, std::numeric_limits<std::uint32_t>::max()));
  std::int64_t window = found.value_or(pattern.default_window);
  if (config.is_encoder && window > 0) window = window / 2 + 1;
  const bool is_uniform = pattern.period <= 0;  // nothing but the window tells the layers apart
  if (window <= 0 || (is_uniform && window >= config.context_length_tokens)) return {};
  KVASIR_TRY(const std::vector<bool> is_local, read_window_layers(metadata, pattern, window, config));
  LayerGroup global, local;
  local.window = static_cast<std::int32_t>(std::min<std::int64_t>(window, config.context_length_tokens));
  for (std::int32_t i = 0; i < config.num_layers; ++i) {
    (is_local[static_cast<std::size_t>(i)] ? local : global).layers.push_back(i);
  }
  config.layer_groups.clear();
  for (LayerGroup* group : {&global, &local}) {
    if (group->layers.empty()) continue;
    if (!config.layer_kv_heads.empty()) {
      group->num_kv_heads = config.layer_kv_heads[static_cast<std::size_t>(group->layers.front())];
    }
    config.layer_groups.push_back(std::move(*group));
  }
  return {};
}

Status share_kv(const io::Metadata& metadata, ModelConfig& config) {
  const std::string key = config.architecture + ".attention.shared_kv_layers";
  KVASIR_TRY(const auto found, metadata.find_int(key, 0, config.num_layers - 1));
  const std::int32_t first = config.num_layers - static_cast<std::int32_t>(found.value_or(0));
  if (first == config.num_layers) return {};
  std::vector<std::int32_t> kv_layers(static_cast<std::size_t>(config.num_layers));
  for (LayerGroup& group : config.layer_groups) {
    const auto shared = std::ranges::lower_bound(group.layers, first);
    if (shared == group.layers.begin()) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("metadata {}: must leave each kind of layer one of its own, is {}: layer {} "
                                    "has none before it",
                                    key, *found, group.layers.front()));
    }
    for (auto layer = group.layers.begin(); layer != group.layers.end(); ++layer) {
      kv_layers[static_cast<std::size_t>(*layer)] = layer < shared ? *layer : *std::prev(shared);
    }
    group.layers.erase(shared, group.layers.end());
  }
  config.kv_layers = std::move(kv_layers);
  return {};
}

Status check_kv_heads(const ModelConfig& config) {
  for (std::int32_t i = 0; i < std::ssize(config.layer_kv_heads); ++i) {
    const std::int32_t expected = config.num_kv_heads_of(config.group_of(i));
    const std::int32_t count = config.layer_kv_heads[static_cast<std::size_t>(i)];
    if (count == expected || !config.stores_kv(i)) continue;
    return make_error(ErrorKind::kBadFile,
                      fmt::format("metadata {}.attention.head_count_kv: layer {} must have {} as others of its kind, "
                                  "has {}",
                                  config.architecture, i, expected, count));
  }
  return {};
}

}  // namespace kvasir::model
