#include "engine/kv_params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/units.h"
#include "kv/policy/registry.h"

namespace kvasir {
namespace {

std::optional<double> number_of(std::string_view text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The share of a later query's attention that dropped blocks may have had: a fiftieth is about the loss of
// the formats anyway.
constexpr double kGateLostShare = 0.02;

double most_lost_share(const KvParams& kv) {
  return kv.max_lost_share.value_or(kv.quality == KvQuality::kGate ? kGateLostShare : 1.0);
}

// A budget of 1.5 or 30 is meant as a share.
constexpr std::int64_t kLeastBudgetBytes = 4096;

}  // namespace

std::optional<KvCacheType> kv_cache_type_named(std::string_view name) {
  if (name == "q12") return KvCacheType::kQ12;
  if (name == "f16") return KvCacheType::kF16;
  if (name == "f32") return KvCacheType::kF32;
  return std::nullopt;
}

kv::KvFormat format_of_new_cells(KvCacheType type, const model::ModelConfig& model) {
  if (type == KvCacheType::kF32) return kv::KvFormat::kF32;
  const bool is_q12 = type == KvCacheType::kQ12 &&
                      std::ranges::all_of(model.layer_groups, [&](const model::LayerGroup& group) {
                        return kv::supports(kv::KvFormat::kQ12, model.head_dim_of(group));
                      });
  return is_q12 ? kv::KvFormat::kQ12 : kv::KvFormat::kF16;
}

std::vector<std::string> kv_policy_names() {
  std::vector<std::string> names = {"none"};
  for (const kv::KvPolicy* policy : kv::policies()) names.emplace_back(policy->name());
  return names;
}

Status set_kv_budget(std::string_view text, KvParams& kv) {
  const bool is_percentage = text.ends_with('%');
  const auto number = number_of(is_percentage ? text.substr(0, text.size() - 1) : text);
  if (number && (is_percentage || *number <= 1.0)) {
    const double share = is_percentage ? *number / 100 : *number;
    if (share > 0.0 && share <= 1.0) {
      kv.budget = share;
      return {};
    }
  } else if (const auto bytes = parse_bytes(text); bytes && *bytes >= kLeastBudgetBytes) {
    kv.budget_bytes = *bytes;
    return {};
  }
  return make_error(
      ErrorKind::kUsage,
      fmt::format("must be a share above 0 and at most 1, a percentage or a size of at least {}, "
                  "got '{}'",
                  format_bytes(kLeastBudgetBytes), printable_line(std::string(text))),
      "kv_budget");
}

Status set_kv_quality(std::string_view name, KvParams& kv) {
  for (const KvQuality quality : {KvQuality::kExact, KvQuality::kGate, KvQuality::kBestEffort}) {
    if (name != name_of(quality)) continue;
    kv.quality = quality;
    return {};
  }
  return make_error(ErrorKind::kUsage,
                    fmt::format("must be exact, gate or best_effort, got '{}'", printable_line(name)),
                    "kv_quality");
}

Status validate(const KvParams& kv) {
  const auto names = kv_policy_names();
  if (std::ranges::find(names, kv.policy) == names.end() && kv::find_policy(kv.policy) == nullptr) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("kv_policy: must be one of {}, got '{}'", fmt::join(names, ", "),
                                  printable_line(kv.policy)),
                      "kv_policy");
  }
  if (!(kv.budget > 0.0 && kv.budget <= 1.0)) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("kv_budget: must be above 0 and at most 1, got {}", kv.budget),
                      "kv_budget");
  }
  if (kv.budget_bytes != 0 && kv.budget_bytes < kLeastBudgetBytes) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("kv_budget: must be at least {}, got {}", format_bytes(kLeastBudgetBytes),
                                  format_bytes(kv.budget_bytes)),
                      "kv_budget");
  }
  if (const double share = kv.max_lost_share.value_or(0.0); !(share >= 0.0 && share <= 1.0)) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("kv_max_lost_share: must be at least 0 and at most 1, got {}", share),
                      "kv_max_lost_share");
  }
  return {};
}

bool is_compressed(const KvParams& kv) {
  return kv.only_at_tokens > 0 || policy_settings(kv).is_lossy();
}

double budget_share(const Request& request, const ModelInfo& model) {
  const KvParams& kv = request.kv;
  if (kv.budget_bytes == 0) return kv.budget;
  const auto prompt_tokens = static_cast<std::int64_t>(request.prompt_token_ids.size());
  const std::int64_t most_tokens = std::max<std::int64_t>(1, model.max_model_len_tokens);
  const std::int64_t tokens = request.sampling.max_tokens ? std::min(most_tokens, prompt_tokens + *request.sampling.max_tokens) : most_tokens;
  std::int64_t bytes_per_token = 0;
  for (const KvGroupInfo& group : model.kv_groups) bytes_per_token += group.window_tokens == 0 ? group.bytes_per_token : 0;
  if (bytes_per_token == 0) return kv.budget;
  return std::min(kv.budget, static_cast<double>(kv.budget_bytes) / (static_cast<double>(std::max<std::int64_t>(1, tokens)) * static_cast<double>(bytes_per_token)));
}

KvPromise promise_of(const KvParams& kv, double budget) {
  if (!is_compressed(kv)) return {};
  const bool is_loosened = kv.quality == KvQuality::kGate && most_lost_share(kv) > kGateLostShare;
  const kv::KvPolicy* policy = kv::find_policy(kv.policy);
  const double share = policy != nullptr && !policy->has_budget() ? 1.0 : budget;
  const auto step = std::ranges::lower_bound(kKvBudgetSteps, share);
  return {.policy = kv.policy,
          .quality = is_loosened ? KvQuality::kBestEffort : kv.quality,
          .budget = step == kKvBudgetSteps.end() ? 1.0 : *step};
}

bool uses_learned_forecast(const KvParams& kv) {
  return is_compressed(kv) && kv::find_policy(kv.policy) == &kv::learned_ladder_policy();
}

std::optional<std::string> unmet_budget(const KvParams& kv, const KvUsage& usage, std::int32_t num_choices) {
  if (usage.is_shadow || usage.full_bytes == 0 || (kv.budget >= 1.0 && kv.budget_bytes == 0)) return std::nullopt;
  const std::int64_t allowed_bytes = kv.budget_bytes * std::max(num_choices, 1);
  const bool is_share = kv.budget < 1.0 && usage.share() > kv.budget;
  const bool is_beyond = is_share || (allowed_bytes > 0 && usage.bytes > allowed_bytes);
  if (!is_beyond) return std::nullopt;
  const std::string kept = is_share ? fmt::format("{:.0f}% of its size in f16, the budget is {:.0f}%", 100 * usage.share(), 100 * kv.budget)
                                    : fmt::format("{}, the budget is {}", format_bytes(usage.bytes), format_bytes(allowed_bytes));
  if (const kv::KvPolicy* policy = kv::find_policy(kv.policy); policy != nullptr && !policy->has_budget()) {
    return fmt::format("the KV cache has {}: {} keeps its own bytes, whatever the budget is", kept, kv.policy);
  }
  const std::string_view keeper = kv.max_lost_share ? "kv_max_lost_share" : "kv_quality gate";
  return fmt::format("the KV cache has {}: the last {} tokens stay as they are{}", kept, kv::kTokensPerBlock,
                     most_lost_share(kv) < 1.0 ? fmt::format(", and {} keeps what later tokens may read", keeper) : "");
}

kv::KvPolicySettings policy_settings(const KvParams& kv) {
  if (kv.quality == KvQuality::kExact) return {};
  return {.policy = kv::find_policy(kv.policy),
          .budget_share = kv.budget,
          .budget_bytes = kv.budget_bytes,
          .max_lost_share = most_lost_share(kv),
          .seed = kv.seed,
          .only_at_tokens = kv.only_at_tokens,
          .only_cells = {kv.first_head, kv.end_head},
          .is_share_of_present = kv.is_share_of_present};
}

}  // namespace kvasir
