#include "kv/policy/policy.h"

#include <bit>

#include "kv/policy/served_forecast.h"

namespace kvasir::kv {

std::uint64_t policy_fingerprint(const KvPolicySettings& settings, KvFormat new_cells) {
  std::uint64_t fingerprint = static_cast<std::uint64_t>(new_cells) + 1;
  const auto add = [&](std::uint64_t word) { fingerprint = fingerprint * 0x9e3779b97f4a7c15u + word; };
  if (settings.weights_version != 0) add(settings.weights_version);
  if (!settings.is_lossy()) return fingerprint;
  for (char c : settings.policy->name()) add(static_cast<unsigned char>(c));
  add(std::bit_cast<std::uint64_t>(settings.budget_share));
  add(static_cast<std::uint64_t>(settings.budget_bytes));
  add(std::bit_cast<std::uint64_t>(settings.max_lost_share));
  add(settings.seed);
  add(static_cast<std::uint64_t>(settings.only_at_tokens));
  add(settings.is_share_of_present ? 1 : 0);
  add(static_cast<std::uint64_t>(settings.only_cells.begin));
  add(static_cast<std::uint64_t>(settings.only_cells.end));
  if (settings.forecast != nullptr) add(static_cast<std::uint64_t>(settings.forecast->version));
  return fingerprint;
}

}  // namespace kvasir::kv
