#include "engine/model_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "base/printable.h"
#include "engine/embedding_prompt.h"

namespace kvasir {
namespace {

// The type that holds most of the weights.
std::string main_quantization(const io::WeightSource& source) {
  std::map<std::string, std::int64_t> elements;
  for (const TensorView& tensor : source.tensors()) {
    if (tensor.name.starts_with("blk."))
      elements[std::string(name_of(tensor.dtype))] += tensor.num_elements();
  }
  const auto largest = std::ranges::max_element(elements, {}, [](const auto& entry) { return entry.second; });
  return largest == elements.end() ? "" : largest->first;
}

}  // namespace

// The experts' have a name in _exps, or the expert's number before the last dot.
std::int64_t num_active(const TensorView& tensor, const backend::RoutingRule& rule) {
  if (rule.num_experts == 0) return tensor.num_elements();
  const std::string_view name = tensor.name;
  const std::size_t end = name.rfind('.');
  const bool is_of_experts = name.find("_exps.") != name.npos ||
                             (name.find(".ffn_") != name.npos && end != name.npos && end > 0 &&
                              name[end - 1] >= '0' && name[end - 1] <= '9');
  return is_of_experts ? tensor.num_elements() / rule.num_experts * rule.num_used : tensor.num_elements();
}

ModelInfo describe_header(const io::WeightSource& source, const model::ModelConfig& config) {
  ModelInfo info;
  info.name = printable_line(config.name);
  info.architecture = config.architecture;
  info.quantization = main_quantization(source);
  for (const TensorView& tensor : source.tensors()) {
    info.num_parameters += tensor.num_elements();
    if (tensor.name.starts_with("blk.")) info.num_layer_parameters += num_active(tensor, config.moe.rule);
  }
  info.num_layers = config.num_layers;
  info.hidden_size = config.hidden_size;
  info.is_encoder = config.is_encoder;
  info.vocab_size = config.num_tokens;
  info.context_length_tokens = config.context_length_tokens;
  return info;
}

ModelInfo describe(const io::WeightSource& source, const model::Model& model, const kv::KvCacheConfig& kv,
                   std::int32_t max_model_len_tokens) {
  const model::ModelConfig& config = model.config();
  ModelInfo info = describe_header(source, config);
  info.weight_bytes = model.weight_bytes();
  for (std::size_t i = 0; i < config.layer_groups.size(); ++i) {
    const std::int64_t block_bytes = kv.groups[i].cells_per_block * kv::cell_bytes(kv.new_cells, kv.groups[i].head_dim);
    info.kv_groups.push_back({.bytes_per_token = block_bytes / kv::kTokensPerBlock,
                              .window_tokens = config.layer_groups[i].window,
                              .num_layers = static_cast<std::int32_t>(config.layer_groups[i].layers.size()),
                              .num_kv_heads = kv.groups[i].num_kv_heads});
  }
  info.embedding_size = model.pooled_head().embedding_size();
  info.num_labels = model.pooled_head().num_labels();
  info.pooling = config.pooling == Pooling::kRank && info.num_labels == 0 ? config.rank_pooling : config.pooling;
  info.has_pooling = config.is_encoder || (config.says_pooling && config.pooling != Pooling::kRank);
  read_embedding_prompts(source.metadata(), info);
  info.num_token_types = model.num_token_types();
  info.max_model_len_tokens = max_model_len_tokens;
  return info;
}

void note_short_context(const EngineConfig& config, ModelInfo& info) {
  const bool is_chosen = config.max_model_len_tokens > 0 || config.kv_cache_tokens > 0;
  if (is_chosen || info.max_model_len_tokens >= info.context_length_tokens) return;
  info.notices.push_back(fmt::format("context: {} tokens fit into the memory, the model was trained for {} (--memory)",
                                     info.max_model_len_tokens, info.context_length_tokens));
}

}  // namespace kvasir
