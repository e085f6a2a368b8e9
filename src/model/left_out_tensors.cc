#include "model/left_out_tensors.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <system_error>

namespace kvasir::model {
namespace {

constexpr std::string_view kPrefixes[] = {
    "v.",   // vision
    "mm.",  // what turns its output into embeddings
    "a.",   // audio
};
constexpr std::string_view kFreqFactors = "rope_freqs.weight";
constexpr std::string_view kNames[] = {
    "embeddings.position_ids",  // 0, 1, 2, ..
    "pooler.dense.weight",
    "pooler.dense.bias",
};
constexpr std::string_view kLayerPrefix = "blk.";
// Of a layer that attends to another one's keys and values.
constexpr std::string_view kUnusedWhenShared[] = {".attn_k.weight", ".attn_v.weight", ".attn_k_norm.weight"};

bool turns_by_freq_factors(const ModelConfig& config) {
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) {
    const RopeConfig& rope = config.rope_of(layer);
    if (rope.takes_freq_factors && rope.rotary_dim > 0 && rope.scaling != RopeScaling::kLongRope) return true;
  }
  return false;
}

}  // namespace

bool is_left_out(std::string_view name, const ModelConfig& config) {
  if (std::ranges::any_of(kPrefixes, [name](std::string_view prefix) { return name.starts_with(prefix); })) {
    return true;
  }
  if (name == kFreqFactors) return !turns_by_freq_factors(config);
  if (std::ranges::find(kNames, name) != std::end(kNames) || name.ends_with(".input_scale")) return true;
  if (!name.starts_with(kLayerPrefix)) return false;
  std::int32_t layer = 0;
  const char* begin = name.data() + kLayerPrefix.size();
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
  if (error != std::errc() || layer < 0) return false;
  if (layer < config.num_layers) {
    const std::string_view part = name.substr(static_cast<std::size_t>(end - name.data()));
    return !config.stores_kv(layer) && std::ranges::find(kUnusedWhenShared, part) != std::end(kUnusedWhenShared);
  }
  return layer < config.num_layers + config.num_predicting_layers;
}

std::vector<std::string> left_out_tensors(const io::WeightSource& source, const ModelConfig& config) {
  std::vector<std::string> names;
  for (const TensorView& tensor : source.tensors()) {
    // The hidden layer of a classifier, where there is one.
    const bool is_used = tensor.name.starts_with("pooler.") && source.find("cls.output.weight") != nullptr;
    if (!is_used && is_left_out(tensor.name, config)) names.emplace_back(tensor.name);
  }
  return names;
}

}  // namespace kvasir::model
