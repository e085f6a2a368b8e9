#include "engine/model_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/printable.h"
#include "engine/kv_params.h"
#include "engine/model_check.h"
#include "engine/model_info.h"
#include "kv/cells/cell.h"
#include "model/left_out_tensors.h"
#include "model/model.h"
#include "quant/dtype.h"

namespace kvasir {
namespace {

// Parts of names of tensors that see or hear: of GGUF files, and of folders.
constexpr std::string_view kSensePrefixes[] = {"v.", "mm.", "a."};
constexpr std::string_view kSenseParts[] = {"vision", "visual", "audio", "image", "multi_modal", "patch_merger"};

bool is_of_senses(std::string_view name) {
  const auto begins = [name](std::string_view prefix) { return name.starts_with(prefix); };
  const auto holds = [name](std::string_view part) { return name.find(part) != name.npos; };
  return std::ranges::any_of(kSensePrefixes, begins) || std::ranges::any_of(kSenseParts, holds);
}

std::string text_or_empty(const io::Metadata& metadata, const std::string& key) {
  auto text = metadata.find_string(key);
  return text && *text ? printable_line(**text) : std::string();
}

std::string pooling_name(const io::Metadata& metadata, const std::string& architecture) {
  constexpr std::string_view kNames[] = {"none", "mean", "cls", "last", "rank"};
  const auto type = metadata.find_int(architecture + ".pooling_type", 0, std::ssize(kNames) - 1);
  return type && *type ? std::string(kNames[static_cast<std::size_t>(**type)]) : std::string();
}

std::string describe_rope(const model::RopeConfig& rope, bool has_file_factors) {
  if (rope.rotary_dim == 0) return "none";
  std::string text = fmt::format("base {:g} over {}", rope.freq_base, rope.rotary_dim);
  switch (rope.scaling) {
    case model::RopeScaling::kNone:
      break;
    case model::RopeScaling::kLinear:
      text += fmt::format(", linear x {:g}", rope.factor);
      break;
    case model::RopeScaling::kYarn:
      text += fmt::format(", yarn x {:g} from {}", rope.factor, rope.original_context_tokens);
      break;
    case model::RopeScaling::kLongRope:
      text += fmt::format(", longrope from {}", rope.original_context_tokens);
      break;
  }
  if (has_file_factors && rope.takes_freq_factors && rope.scaling != model::RopeScaling::kLongRope) {
    text += ", factors of the file";
  }
  return text;
}

// Each kind once, with the number of its layers where there are several.
std::string describe_ropes(const model::ModelConfig& config, bool has_file_factors) {
  std::vector<std::pair<std::string, std::int32_t>> kinds;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) {
    std::string kind = describe_rope(config.rope_of(layer), has_file_factors);
    const auto known = std::ranges::find(kinds, kind, &std::pair<std::string, std::int32_t>::first);
    if (known == kinds.end()) {
      kinds.emplace_back(std::move(kind), 1);
    } else {
      ++known->second;
    }
  }
  if (kinds.size() == 1) return kinds.front().first;
  std::vector<std::string> parts;
  for (const auto& [kind, count] : kinds) parts.push_back(fmt::format("{} in {} layers", kind, count));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::int64_t kv_bytes_per_token(const model::ModelConfig& config, KvCacheType type) {
  const kv::KvFormat format = format_of_new_cells(type, config);
  std::int64_t bytes = 0;
  for (const model::LayerGroup& group : config.layer_groups) {
    bytes += kv::cell_bytes(format, config.head_dim_of(group)) * config.num_kv_heads_of(group) *
             std::ssize(group.layers) / kv::kTokensPerBlock;
  }
  return bytes;
}

ConfigFacts facts_of(const io::WeightSource& source, const model::ModelConfig& config) {
  ConfigFacts facts;
  for (const TensorView& tensor : source.tensors()) {
    facts.num_active_parameters += num_active(tensor, config.moe.rule);
  }
  facts.original_context_tokens = config.rope.original_context_tokens;
  facts.rope = describe_ropes(config, source.find("rope_freqs.weight") != nullptr);
  if (config.moe.has_experts()) {
    facts.experts = {.count = config.moe.rule.num_experts,
                     .used = config.moe.rule.num_used,
                     .shared = config.moe.shared_intermediate_size > 0 ? 1 : 0};
  }
  for (const model::LayerGroup& group : config.layer_groups) {
    facts.kv_groups.push_back({.num_layers = static_cast<std::int32_t>(group.layers.size()),
                               .num_kv_heads = config.num_kv_heads_of(group),
                               .key_dim = config.head_dim_of(group),
                               .value_dim = config.head_dim_of(group),
                               .window_tokens = group.window});
  }
  facts.kv_bytes_per_token_q12 = kv_bytes_per_token(config, KvCacheType::kQ12);
  facts.kv_bytes_per_token_f16 = kv_bytes_per_token(config, KvCacheType::kF16);
  return facts;
}

}  // namespace

std::string_view name_of(Runs runs) {
  constexpr std::string_view kNames[] = {"yes", "text_only", "no"};
  return kNames[static_cast<std::size_t>(runs)];
}

ModelFacts facts_about(const OpenedModel& model) {
  const io::WeightSource& source = model.source();
  const io::Metadata& metadata = source.metadata();
  const std::string architecture = text_or_empty(metadata, "general.architecture");
  ModelFacts facts;
  facts.reasons = reasons_not_to_run(model);
  const auto tokenizer = model.load_tokenizer();
  facts.notices = notices_about(source, tokenizer ? tokenizer->get() : nullptr);
  facts.left_out.assign(source.left_out().begin(), source.left_out().end());
  facts.nearest = model::nearest_architecture(architecture);
  for (const TensorView& tensor : source.tensors()) {
    facts.type_bytes[std::string(name_of(tensor.dtype))] += tensor.num_bytes();
  }
  for (const io::UnsupportedTensor& tensor : source.unsupported()) facts.type_bytes[tensor.type] += tensor.num_bytes;
  facts.tokenizer = text_or_empty(metadata, "tokenizer.ggml.model");
  if (facts.tokenizer.empty()) facts.tokenizer = text_or_empty(metadata, "tokenizer.kind");
  facts.pre_tokenizer = text_or_empty(metadata, "tokenizer.ggml.pre");
  facts.pooling = pooling_name(metadata, architecture);
  // Tensors by other names would be counted wrongly.
  if (const auto config = model::load_config(source); config && source.faults().empty()) {
    facts.config = facts_of(source, *config);
    std::ranges::move(model::left_out_tensors(source, *config), std::back_inserter(facts.left_out));
  }
  const bool has_senses = std::ranges::any_of(facts.left_out, is_of_senses);
  facts.runs = !facts.reasons.empty() ? Runs::kNo : has_senses ? Runs::kTextOnly : Runs::kYes;
  return facts;
}

}  // namespace kvasir
