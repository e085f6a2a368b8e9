// The key that waiting sequences are ordered by: a pure function of what is known of each.
#pragma once

#include <compare>
#include <cstdint>

#include "kvasir/waiting_policy.h"

namespace kvasir::admission {

struct WaitingConfig {
  WaitingPolicy policy = WaitingPolicy::kPriority;
  double ageing_ms = 0.0;  // after so long a class better, and again; 0: never
  // Tenants that have been served about the same, to this much, take their turns by value.
  double tenant_quantum_tokens = 4096.0;
};

// The facts of one waiting sequence.
struct WaitingFacts {
  std::int64_t arrival = 0;    // rises with arrival
  std::int32_t priority = 0;   // class: lower first
  bool has_started = false;    // and was preempted: a client is reading its answer
  double pending_ms = 0.0;     // since it came
  double target_ms = 0.0;      // for its first token; 0: whenever
  double prefill_ms = 0.0;     // to compute what of its tokens is not cached
  double hit_ratio = 0.0;      // of its tokens, those that are cached
  double held_token_ms = 0.0;  // KV tokens times how long each will be held until its end, at least 1
  double served_tokens = 0.0;  // of its tenant, see FairShare
  double adapter_lead = 0.0;   // of its adapter, in quanta, beyond the least served one of its tenant
};

// The key of the order; the lower one starts first.
struct WaitingKey {
  std::int64_t priority = 0;
  std::int64_t is_new = 0;
  std::int64_t tenant_turn = 0;
  std::int64_t adapter_turn = 0;
  std::int64_t is_late = 0;
  double negative_value = 0.0;
  std::int64_t arrival = 0;

  auto operator<=>(const WaitingKey&) const = default;
};

// The class, aged.
std::int64_t class_of(const WaitingConfig& config, const WaitingFacts& facts);

// The class by which a request competes with those of its own tenant, or of another. By value, a class below
// 0 counts among its tenant's own only; as they came, no class counts.
std::int64_t competing_class(const WaitingConfig& config, std::int64_t aged_class, bool is_own_tenant);

// The key compares requests of all tenants; WaitingOrder puts a tenant's urgent ones before its others.
//
// For requests that can still meet their target: the share of it that will be over when they have their first
// token, to the fourth, times (1 + hit_ratio), over what they hold (the value of Apt-Serve, Gao et al. 2025,
// with cache hits, and steeper). Those that cannot come behind, as they came, until they have waited a
// quarter longer than the target: then they are as urgent as that.
WaitingKey key_of(const WaitingConfig& config, const WaitingFacts& facts);

}  // namespace kvasir::admission
