#include "admission/waiting_key.h"

#include <algorithm>
#include <cmath>

namespace kvasir::admission {
namespace {

// A request that misses its target waits for those that need not, up to this many targets in all.
constexpr double kLateTtftSlack = 1.25;
// With 1 newcomers overtake those whose time is nearly up, and beyond capacity as many requests miss their
// target as reach it for that; with more it comes near to the order of arrival (bench/schedule).
constexpr double kUrgencyPower = 4.0;

}  // namespace

std::int64_t class_of(const WaitingConfig& config, const WaitingFacts& facts) {
  const double steps = config.ageing_ms > 0.0 ? std::floor(facts.pending_ms / config.ageing_ms) : 0.0;
  return facts.priority - static_cast<std::int64_t>(steps);
}

std::int64_t competing_class(const WaitingConfig& config, std::int64_t aged_class, bool is_own_tenant) {
  if (config.policy == WaitingPolicy::kFifo) return 0;
  const bool is_bounded = config.policy == WaitingPolicy::kSloValue && !is_own_tenant;
  return is_bounded ? std::max<std::int64_t>(aged_class, 0) : aged_class;
}

WaitingKey key_of(const WaitingConfig& config, const WaitingFacts& facts) {
  WaitingKey key{.priority = competing_class(config, class_of(config, facts), false),
                 .arrival = facts.arrival};
  if (config.policy != WaitingPolicy::kSloValue) return key;
  key.is_new = facts.has_started ? 0 : 1;
  key.tenant_turn = static_cast<std::int64_t>(facts.served_tokens / config.tenant_quantum_tokens);
  key.adapter_turn = static_cast<std::int64_t>(facts.adapter_lead);
  const double expected_ms = facts.pending_ms + facts.prefill_ms;
  const bool has_missed = facts.target_ms > 0.0 && expected_ms > facts.target_ms;
  key.is_late = has_missed && expected_ms < kLateTtftSlack * facts.target_ms ? 1 : 0;
  if (key.is_late != 0) return key;
  const double urgency = facts.target_ms > 0.0 ? expected_ms / facts.target_ms : expected_ms;
  key.negative_value = -std::pow(urgency, kUrgencyPower) * (1.0 + facts.hit_ratio) / facts.held_token_ms;
  return key;
}

}  // namespace kvasir::admission
