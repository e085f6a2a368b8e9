#include "admission/ttft_estimate.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "admission/fair_share.h"
#include "admission/ttft_target.h"

namespace kvasir::admission {
namespace {

constexpr double kTypicalPrompts = 2.0;

struct Ahead {
  double num_sequences = 0.0;
  PromptWork prompts;
  PromptWork own_prompts;  // of these, its own tenant's

  void add(const WaitingGroup& group, const PromptWork& waiting, double share) {
    num_sequences += share * group.num_sequences;
    prompts += waiting.part(share);
  }
};

double quantum_tokens(const LoadSnapshot& load, const WaitingConfig& config) {
  return config.tenant_quantum_tokens * load.turn_scale * FairShare::quantum_scale(load.num_tenants);
}

// The part of a group that starts before a request of its class. `own_tokens`: what the request's tenant will
// have had when the request is next. Tenants take turns, so the group's tenant gets no more until then, and
// half a quantum because turns have a length.
double share_before(const WaitingGroup& group, double own_tokens, double quantum_tokens) {
  const double tokens = own_tokens + quantum_tokens / 2 - group.served_tokens;
  const auto waiting_tokens = static_cast<double>(group.prompts.num_tokens);
  return tokens >= waiting_tokens ? 1.0 : std::max(0.0, tokens / waiting_tokens);
}

// The part of longer prompts that this one passes: all but the first `due_tokens`.
PromptWork passed(const PromptWork& prompt, const std::vector<PromptWork>& others, double due_tokens) {
  PromptWork longer;
  for (const PromptWork& other : others) {
    if (other.num_tokens > prompt.num_tokens) longer += other;
  }
  const double share = longer.num_tokens > 0
                           ? std::clamp(1.0 - due_tokens / static_cast<double>(longer.num_tokens), 0.0, 1.0)
                           : 0.0;
  return longer.part(share);
}

// Requests that start before one that comes now, by the rules of waiting_key.h. All of its own tenant count:
// their order by value is not known yet.
Ahead ahead_of(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
               std::int32_t priority, const PromptWork& prompt, bool is_prefill_only) {
  const bool by_value = config.policy == WaitingPolicy::kSloValue;
  double own_tokens = load.served_tokens(tenant);
  for (const WaitingGroup& group : load.groups) {
    if (group.tenant == tenant && group.priority <= priority)
      own_tokens += static_cast<double>(group.prompts.num_tokens);
  }
  Ahead ahead;
  for (const WaitingGroup& group : load.groups) {
    const bool is_own = group.tenant == tenant;
    const std::int64_t group_class = competing_class(config, group.priority, is_own);
    const std::int64_t own_class = competing_class(config, priority, is_own);
    const bool takes_turns = by_value && !is_own && group_class == own_class;
    double share = group_class <= own_class ? 1.0 : 0.0;
    if (takes_turns) share = share_before(group, own_tokens, quantum_tokens(load, config));
    PromptWork waiting = group.prompts;
    if (!is_prefill_only) waiting = waiting.without(group.prefill_only);
    // Long prompts yield, except in the turns that are due to another tenant.
    const double due_tokens = takes_turns ? own_tokens - group.served_tokens : 0.0;
    if (by_value) waiting = waiting.without(passed(prompt, group.long_ones, due_tokens));
    ahead.add(group, waiting, share);
    if (group.tenant == tenant && share > 0.0) ahead.own_prompts += waiting;
    // A prompt that has begun comes before all that wait; by value, before its own turn and those behind.
    PromptWork running = group.running_prompts;
    if (!is_prefill_only) running = running.without(group.running_prefill_only);
    if (by_value) running = running.without(passed(prompt, group.running_long, due_tokens));
    if (share > 0.0 || !by_value) ahead.prompts += running;
  }
  return ahead;
}

// Until a seat is free when `num_ahead` take theirs before, and keep them for the mean time.
double seat_wait_ms(const LoadSnapshot& load, std::int32_t num_ahead, std::int32_t num_reserved) {
  const std::int32_t num_short = num_ahead + num_reserved - load.num_free_seats;
  if (num_short < 0) return 0.0;
  std::vector<double> seats = load.busy_seats_ms;
  // The seats that are free now are taken too.
  seats.insert(seats.end(), static_cast<std::size_t>(std::max(0, load.num_free_seats - num_reserved)),
               load.mean_hold_ms());
  if (seats.empty()) return 0.0;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends(std::greater<>{}, std::move(seats));
  for (std::int32_t i = 0; i < num_short; ++i) {
    const double end = ends.top();
    ends.pop();
    ends.push(end + load.mean_hold_ms());
  }
  return ends.top();
}

// Tokens that a tenant is given without a break, until the least served other tenant has had as many.
double tokens_before_others(const LoadSnapshot& load, std::string_view tenant) {
  double least = std::numeric_limits<double>::infinity();
  for (const WaitingGroup& group : load.groups) {
    if (group.tenant != tenant) least = std::min(least, group.served_tokens);
  }
  return std::max(0.0, least - load.served_tokens(tenant));
}

// The part of the time that a tenant's prompts get: what it has been given lately, but at least an equal part.
double part_of(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant) {
  if (config.policy != WaitingPolicy::kSloValue) return 1.0;
  const auto group = std::ranges::find(load.groups, tenant, &WaitingGroup::tenant);
  const bool is_there = group != load.groups.end();
  const double equal_part = 1.0 / std::max(1, load.num_tenants + (is_there ? 0 : 1));
  return is_there ? std::max(group->recent_share, equal_part) : equal_part;
}

// Until a tenant's own prompts are computed: first without a break, the rest in its part of the time.
double own_wait_ms(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
                   const PromptWork& prompts) {
  if (prompts.num_tokens == 0) return 0.0;
  const double at_once = tokens_before_others(load, tenant) / static_cast<double>(prompts.num_tokens);
  const double rest = std::max(0.0, 1.0 - at_once);
  return load.rates.ms(prompts) * (1.0 - rest + rest / part_of(load, config, tenant));
}

bool runs_prefill_only(const LoadSnapshot& load) {
  return std::ranges::any_of(load.groups, [](const WaitingGroup& group) {
    return group.prefill_only.num_tokens > 0 || group.running_prefill_only.num_tokens > 0;
  });
}

}  // namespace

TtftEstimate estimate_ttft(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
                           std::int32_t priority, const PromptWork& prompt, bool is_prefill_only) {
  const Ahead ahead = ahead_of(load, config, tenant, priority, prompt, is_prefill_only);
  const double slowdown = !is_prefill_only && runs_prefill_only(load) ? 2.0 : 1.0;
  const auto group = std::ranges::find(load.groups, tenant, &WaitingGroup::tenant);
  const bool has_its_share = group != load.groups.end() && group->num_running >= load.seats.share;
  const double seat_ms = seat_wait_ms(load, static_cast<std::int32_t>(ahead.num_sequences),
                                      has_its_share ? load.seats.num_reserved : 0);
  const double own_ms = own_wait_ms(load, config, tenant, ahead.own_prompts);
  return {.wait_ms = std::max({seat_ms, slowdown * load.rates.ms(ahead.prompts), slowdown * own_ms}),
          .prefill_ms = slowdown * load.rates.ms(prompt),
          .typical_ms = load.typical_prompt_ms};
}

bool is_underserved(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant) {
  if (config.policy != WaitingPolicy::kSloValue) return false;
  const double least = load.served_tokens(tenant) + quantum_tokens(load, config);
  return std::ranges::any_of(load.groups,
                             [&](const WaitingGroup& group) { return group.served_tokens > least; });
}

double excess_ms(const TtftEstimate& estimate, double target_ms, double slack_targets) {
  const double limit_ms = slack_targets * std::max(target_ms, kTypicalPrompts * estimate.typical_ms);
  return estimate.wait_ms + estimate.prefill_ms - std::max(limit_ms, kMostSlowdown * estimate.prefill_ms);
}

}  // namespace kvasir::admission
