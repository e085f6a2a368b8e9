#include "model/moe_config.h"

#include <fmt/format.h>

namespace kvasir::model {
namespace {

constexpr std::int64_t kMaxExpertWidth = 1 << 20;
constexpr std::int64_t kMaxDenseLayers = 1024;

// expert_gating_func as GGUF numbers it. A softmax over the chosen alone has the renormalised weights of one over
// all.
enum class GatingFunction : std::int64_t { kSoftmax = 1, kSigmoid = 2, kSoftmaxOfChosen = 3 };

Status read_score(const io::Metadata& metadata, const std::string& prefix, const MoeDefaults& defaults,
                  backend::RoutingRule& rule) {
  rule.score = defaults.score;
  rule.renormalizes = defaults.renormalizes;
  const std::string key = prefix + "expert_gating_func";
  KVASIR_TRY(const auto function, metadata.find_int(key, 0, 255));
  switch (static_cast<GatingFunction>(function.value_or(0))) {
    case GatingFunction::kSoftmax:
      rule.score = backend::RouterScore::kSoftmax;
      break;
    case GatingFunction::kSigmoid:
      rule.score = backend::RouterScore::kSigmoid;
      break;
    case GatingFunction::kSoftmaxOfChosen:
      rule.score = backend::RouterScore::kSoftmax;
      rule.renormalizes = true;
      return {};
    default:
      if (function.value_or(0) == 0) break;  // not said
      return make_error(ErrorKind::kBadFile,
                        fmt::format("metadata {}: must be 1 (softmax), 2 (sigmoid) or 3 (softmax of the "
                                    "chosen), is {}",
                                    key, *function));
  }
  KVASIR_TRY(const auto norm, metadata.find_bool(prefix + "expert_weights_norm"));
  rule.renormalizes = norm.value_or(rule.renormalizes);
  return {};
}

// 0 is what writers put for "the usual".
Status read_weight_scale(const io::Metadata& metadata, const std::string& prefix,
                         backend::RoutingRule& rule) {
  const std::string key = prefix + "expert_weights_scale";
  KVASIR_TRY(const auto scale, metadata.find_float(key));
  if (scale.value_or(0.0) < 0.0) {
    return make_error(ErrorKind::kBadFile, fmt::format("metadata {}: must be above 0, is {}", key, *scale));
  }
  if (scale.value_or(0.0) > 0.0) rule.weight_scale = *scale;
  return {};
}

Status read_groups(const io::Metadata& metadata, const std::string& prefix, backend::RoutingRule& rule) {
  const std::string key = prefix + "expert_group_count";
  KVASIR_TRY(const auto groups, metadata.find_int(key, 0, rule.num_experts));
  if (groups.value_or(0) <= 1) return {};
  rule.num_groups = static_cast<std::int32_t>(*groups);
  if (rule.num_experts % rule.num_groups != 0) {
    return make_error(ErrorKind::kBadFile, fmt::format("metadata {}: must divide the {} experts, is {}", key,
                                                       rule.num_experts, rule.num_groups));
  }
  const std::string used_key = prefix + "expert_group_used_count";
  KVASIR_TRY(const std::int64_t used, metadata.get_int(used_key, 1, rule.num_groups));
  rule.num_used_groups = static_cast<std::int32_t>(used);
  const std::int32_t num_open = rule.num_experts / rule.num_groups * rule.num_used_groups;
  if (num_open >= rule.num_used) return {};
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("metadata {}: {} groups must have at least expert_used_count {} experts, have {}", used_key,
                  used, rule.num_used, num_open));
}

// Widths of the experts. Without a key of their own they are as wide as dense layers.
Status read_widths(const io::Metadata& metadata, const std::string& prefix, const MoeDefaults& defaults,
                   MoeConfig& moe) {
  KVASIR_TRY(auto width, metadata.find_int(prefix + "expert_feed_forward_length", 0, kMaxExpertWidth));
  if (width.value_or(0) == 0) {
    KVASIR_TRY(width, metadata.get_int(prefix + "feed_forward_length", 1, kMaxExpertWidth));
  }
  moe.intermediate_size = static_cast<std::int32_t>(*width);
  KVASIR_TRY(auto shared,
             metadata.find_int(prefix + "expert_shared_feed_forward_length", 0, kMaxExpertWidth));
  if (shared.value_or(0) == 0) {
    KVASIR_TRY(const auto count, metadata.find_int(prefix + "expert_shared_count", 0, 64));
    shared = count.value_or(0) * *width;
  }
  if (*shared == 0 && defaults.has_shared_expert) {
    KVASIR_TRY(shared, metadata.get_int(prefix + "feed_forward_length", 1, kMaxExpertWidth));
  }
  moe.shared_intermediate_size = static_cast<std::int32_t>(*shared);
  return {};
}

}  // namespace

Result<MoeConfig> read_moe_config(const io::Metadata& metadata, const std::string& prefix,
                                  const MoeDefaults& defaults) {
  MoeConfig moe;
  KVASIR_TRY(const auto count, metadata.find_int(prefix + "expert_count", 0, backend::kMaxExperts));
  if (count.value_or(0) == 0) return moe;
  moe.rule.num_experts = static_cast<std::int32_t>(*count);
  KVASIR_TRY(const std::int64_t used, metadata.get_int(prefix + "expert_used_count", 1, *count));
  moe.rule.num_used = static_cast<std::int32_t>(used);
  KVASIR_CHECKED(read_score(metadata, prefix, defaults, moe.rule));
  KVASIR_CHECKED(read_weight_scale(metadata, prefix, moe.rule));
  KVASIR_CHECKED(read_groups(metadata, prefix, moe.rule));
  KVASIR_CHECKED(read_widths(metadata, prefix, defaults, moe));
  KVASIR_TRY(const auto dense, metadata.find_int(prefix + "leading_dense_block_count", 0, kMaxDenseLayers));
  moe.num_leading_dense_layers = static_cast<std::int32_t>(dense.value_or(0));
  return moe;
}

}  // namespace kvasir::model
