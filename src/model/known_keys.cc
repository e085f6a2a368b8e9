#include "model/known_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "model/arch/registry.h"

namespace kvasir::model {
namespace {

enum class KeyRule : std::uint8_t {
  kKnown,  // read by the loader, or of no account to it
  kOff,    // 0, false or absent: anything else is arithmetic that is missing here
  kOne,    // 1, or 0 for "not said": a factor that is missing here
};

struct KnownKey {
  std::string_view suffix;  // after "<architecture>."; one that ends in '.' stands for all that begin so
  KeyRule rule = KeyRule::kKnown;
};

constexpr KnownKey kKnownKeys[] = {
    {"context_length"},
    {"embedding_length"},
    {"block_count"},
    {"feed_forward_length"},
    {"vocab_size"},
    {"tensor_data_layout"},
    {"pooling_type"},
    {"classifier.pooling_type"},
    {"classifier.output_labels"},
    {"attention.head_count"},
    {"attention.head_count_kv"},
    {"attention.key_length"},
    {"attention.value_length"},
    {"attention.key_length_swa"},
    {"attention.value_length_swa"},
    {"attention.layer_norm_rms_epsilon"},
    {"attention.layer_norm_epsilon"},
    {"attention.sliding_window"},
    {"attention.sliding_window_pattern"},
    {"attention.scale"},
    {"attention.causal"},
    {"rope.dimension_count"},
    {"rope.dimension_count_swa"},
    {"rope.freq_base"},
    {"rope.freq_base_swa"},
    {"rope.global.freq_base"},
    {"rope.local.freq_base"},
    {"rope.scale_linear"},
    {"rope.style"},
    {"rope.scaling.type"},
    {"rope.scaling.factor"},
    {"rope.scaling.finetuned"},
    {"rope.scaling.original_context_length"},
    {"rope.scaling.yarn_ext_factor"},
    {"rope.scaling.yarn_attn_factor"},
    {"rope.scaling.yarn_beta_fast"},
    {"rope.scaling.yarn_beta_slow"},
    {"rope.scaling.yarn_log_multiplier"},
    {"rope.scaling.yarn_truncate"},
    {"rope.scaling.attn_factor"},
    {"rope.dimension_sections"},
    {"rope.style"},
    {"attn_logit_softcapping"},
    {"final_logit_softcapping"},
    {"attention.temperature_length"},
    {"attention.temperature_scale"},
    {"logit_scale"},
    {"residual_scale"},
    {"embedding_scale"},
    {"nextn_predict_layers"},
    {"n_deepstack_layers"},
    {"expert_count"},
    {"expert_used_count"},
    {"expert_feed_forward_length"},
    {"expert_shared_count"},
    {"expert_shared_feed_forward_length"},
    {"expert_weights_scale"},
    {"expert_weights_norm"},
    {"expert_gating_func"},
    {"expert_group_count"},
    {"expert_group_used_count"},
    {"leading_dense_block_count"},
    {"dense_2_feat_in"},
    {"dense_2_feat_out"},
    {"dense_3_feat_in"},
    {"dense_3_feat_out"},
    {"vision."},
    {"audio."},
    {"mm."},
    {"attention.max_alibi_bias", KeyRule::kOff},
    {"attention.clamp_kqv", KeyRule::kOff},
    {"rope.scaling.alpha", KeyRule::kOff},
    {"rope.layers", KeyRule::kOff},
    {"use_parallel_residual", KeyRule::kOff},
    {"embedding_length_per_layer_input", KeyRule::kOff},
    {"attention.shared_kv_layers", KeyRule::kOff},
    {"attention.output_scale", KeyRule::kOne},
    {"attention.value_scale", KeyRule::kOne},
};

const KnownKey* find_known(std::string_view suffix) {
  const auto* const found = std::ranges::find_if(kKnownKeys, [suffix](const KnownKey& known) {
    return known.suffix.ends_with('.') ? suffix.starts_with(known.suffix) : suffix == known.suffix;
  });
  return found == std::end(kKnownKeys) ? nullptr : found;
}

// The value as a number; nothing when it is none.
std::optional<double> number_of(const io::Metadata& metadata, std::string_view key) {
  if (const auto flag = metadata.find_bool(key); flag && *flag) return **flag ? 1.0 : 0.0;
  const auto number = metadata.find_float(key);
  return number ? *number : std::nullopt;
}

// Whether the architecture computes a key that is missing in others.
bool is_computed(const Architecture* architecture, std::string_view suffix) {
  return architecture != nullptr && !suffix.empty() &&
         std::ranges::find(architecture->keys, suffix) != architecture->keys.end();
}

bool is_allowed(std::optional<double> value, KeyRule rule) {
  if (rule == KeyRule::kKnown) return true;
  return value && (*value == 0.0 || (rule == KeyRule::kOne && *value == 1.0));
}

}  // namespace

KeyReport check_keys(const io::Metadata& metadata) {
  KeyReport report;
  const auto architecture = metadata.find_string("general.architecture");
  if (!architecture || !*architecture) return report;
  const std::string prefix = **architecture + ".";
  const Architecture* family = find_architecture(**architecture);
  for (const auto& [key, value] : metadata.values()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view suffix = std::string_view(key).substr(prefix.size());
    if (is_computed(family, suffix)) continue;
    const KnownKey* known = find_known(suffix);
    if (known == nullptr) {
      report.unknown.push_back(printable(key));
      continue;
    }
    const std::optional<double> number = number_of(metadata, key);
    if (is_allowed(number, known->rule)) continue;
    report.refused.push_back(
        fmt::format("metadata {}: must be {} or absent, as this is not computed here, is {}", printable(key),
                    known->rule == KeyRule::kOne ? 1 : 0,
                    number ? fmt::format("{}", *number) : std::string("no number")));
  }
  return report;
}

}  // namespace kvasir::model
