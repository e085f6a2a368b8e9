#include "sched/waiting_order.h"

#include <algorithm>
#include <cmath>

namespace kvasir::sched {
namespace {

// Who misses the target waits for those who need not, but no longer than this many targets in all.
constexpr double kLatePatience = 1.25;
// With 1 newcomers overtake those whose time is nearly up, and beyond capacity as many requests miss their
// target as reach it for that; with more it comes near to the order of arrival (bench/schedule).
constexpr double kUrgencyPower = 4.0;

}  // namespace

std::int64_t class_of(const WaitingConfig& config, const WaitingFacts& facts) {
  const double steps = config.ageing_ms > 0.0 ? std::floor(facts.pending_ms / config.ageing_ms) : 0.0;
  return facts.priority - static_cast<std::int64_t>(steps);
}

WaitingKey key_of(const WaitingConfig& config, const WaitingFacts& facts) {
  WaitingKey key{.arrival = facts.arrival};
  if (config.policy == WaitingPolicy::kFifo) return key;
  key.priority = class_of(config, facts);
  if (config.policy == WaitingPolicy::kPriority) return key;
  key.priority = std::max<std::int64_t>(key.priority, 0);
  key.is_new = facts.has_started ? 0 : 1;
  key.tenant_turn = static_cast<std::int64_t>(facts.served_tokens / config.tenant_quantum_tokens);
  const double expected_ms = facts.pending_ms + facts.prefill_ms;
  const bool has_missed = facts.target_ms > 0.0 && expected_ms > facts.target_ms;
  key.is_late = has_missed && expected_ms < kLatePatience * facts.target_ms ? 1 : 0;
  if (key.is_late != 0) return key;
  const double urgency = facts.target_ms > 0.0 ? expected_ms / facts.target_ms : expected_ms;
  key.negative_value = -std::pow(urgency, kUrgencyPower) * (1.0 + facts.hit_ratio) / facts.held_token_ms;
  return key;
}

}  // namespace kvasir::sched
