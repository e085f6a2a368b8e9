// Counts of answers that were scored again by the exact path, by how their keys and values were kept.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "kvasir/request.h"

namespace kvasir {

// Upper bounds of mean KL, nats a token; one more count is of those above all.
inline constexpr std::array<double, 11> kShadowKlBounds = {0.0, 1e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};

// The promise of a budget is that of the first step that is not below it.
inline constexpr std::array<double, 8> kKvBudgetSteps = {0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 1.0};

// Answers whose divergence is promised together: those under one KV policy, at one quality, with budgets of one step. A
// request that asks for little says nothing about others that ask for more. The default: no policy.
struct KvPromise {
  std::string policy = "none";
  KvQuality quality = KvQuality::kExact;
  double budget = 1.0;  // one of kKvBudgetSteps

  auto operator<=>(const KvPromise&) const = default;
};

// Where `broken` is broken, so is `other`: it is of the same answers, or of smaller budgets.
inline bool covers(const KvPromise& broken, const KvPromise& other) {
  return other.policy == broken.policy && other.quality == broken.quality && other.budget <= broken.budget;
}

enum class KvPolicyState : std::uint8_t { kServing, kHeldBack };

// The counts of one promise. Exact answers have a row of their own, with no policy.
struct ShadowStats {
  KvPromise promise;
  KvPolicyState state = KvPolicyState::kServing;
  double promised_kl = 0.0;
  double log10_evidence = 0.0;  // against the promise; the policy is held back at 3
  std::int64_t num_scored = 0;
  std::int64_t num_unknown = 0;  // could not be scored: neither good nor bad
  std::int64_t num_held_back = 0;
  std::int64_t num_downgraded = 0;  // requests that another policy served
  std::int64_t num_tokens = 0, num_tokens_agreed = 0;  // of answers, and of these with the same likeliest token
  double kl_sum = 0.0;                                 // of the answers' means
  std::array<std::int64_t, kShadowKlBounds.size() + 1> by_kl{};
};

}  // namespace kvasir
