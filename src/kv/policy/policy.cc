#include "kv/policy/policy.h"

#include <bit>

namespace kvasir::kv {

std::uint64_t policy_fingerprint(const KvPolicySettings& settings, KvFormat new_cells) {
  std::uint64_t fingerprint = static_cast<std::uint64_t>(new_cells) + 1;
  if (!settings.is_lossy()) return fingerprint;
  for (char c : settings.policy->name()) fingerprint = fingerprint * 131 + static_cast<unsigned char>(c);
  return fingerprint * 31 + std::bit_cast<std::uint64_t>(settings.budget_share);
}

}  // namespace kvasir::kv
