#include "sched/start_forecast.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "sched/tenant_ledger.h"

namespace kvasir::sched {
namespace {

constexpr double kPatienceOfLowerClasses = 30.0;
constexpr double kTypicalPrompts = 2.0;
constexpr double kMostSlowdown = 1.25;

struct Ahead {
  double num_sequences = 0.0;
  PromptWork prompts;
  PromptWork own_prompts;  // of these, its own tenant's

  void add(const WaitingGroup& group, const PromptWork& waiting, double share) {
    num_sequences += share * group.num_sequences;
    prompts += waiting.part(share);
  }
};

// Of as many tenants as there are.
double turn_tokens(const LoadSnapshot& load, const WaitingConfig& config) {
  return config.tenant_quantum_tokens * TenantLedger::turn_scale(load.num_tenants);
}

// What of a group starts before a request of its class whose tenant will have had `own_tokens` when that is
// next: tenants take turns, so the group's gets no more until then, and half a turn because of their length.
double share_before(const WaitingGroup& group, double own_tokens, double turn_tokens) {
  const double tokens = own_tokens + turn_tokens / 2 - group.served_tokens;
  const auto waiting_tokens = static_cast<double>(group.prompts.num_tokens);
  return tokens >= waiting_tokens ? 1.0 : std::max(0.0, tokens / waiting_tokens);
}

// What of longer prompts this one passes: all but the first `due_tokens`.
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

// Those that start before one that comes now, by the order of waiting_order.h. Of its own tenant all count:
// what value will make of them is not known.
Ahead ahead_of(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
               std::int32_t priority, const PromptWork& prompt, bool is_prefill_only) {
  const bool by_value = config.policy == WaitingPolicy::kSloValue;
  const bool by_class = config.policy != WaitingPolicy::kFifo;
  double own_tokens = load.served_tokens(tenant);
  for (const WaitingGroup& group : load.groups) {
    if (group.tenant == tenant && group.priority <= priority)
      own_tokens += static_cast<double>(group.prompts.num_tokens);
  }
  Ahead ahead;
  for (const WaitingGroup& group : load.groups) {
    const bool is_other = by_value && group.tenant != tenant;
    const auto class_of = [&](std::int32_t p) { return is_other ? std::max(0, p) : p; };
    const bool is_before = !by_class || class_of(group.priority) < class_of(priority);
    const bool is_equal = by_class && class_of(group.priority) == class_of(priority);
    const bool takes_turns = is_other && is_equal;
    double share = is_before || is_equal ? 1.0 : 0.0;
    if (takes_turns) share = share_before(group, own_tokens, turn_tokens(load, config));
    PromptWork waiting = group.prompts;
    if (!is_prefill_only) waiting = waiting.without(group.prefill_only);
    // Long ones give way, but for the turns that are due to another tenant.
    const double due_tokens = takes_turns ? own_tokens - group.served_tokens : 0.0;
    if (by_value) waiting = waiting.without(passed(prompt, group.long_ones, due_tokens));
    ahead.add(group, waiting, share);
    if (group.tenant == tenant && share > 0.0) ahead.own_prompts += waiting;
    // Who has begun is before all that wait; by value it is before its own turn and those behind
    // (scheduler.h).
    PromptWork running = group.running_prompts;
    if (!is_prefill_only) running = running.without(group.running_prefill_only);
    if (by_value) running = running.without(passed(prompt, group.running_long, due_tokens));
    if (share > 0.0 || !by_value) ahead.prompts += running;
  }
  return ahead;
}

// Until a seat is free when so many take theirs before: those that do keep it for the mean time.
double seat_wait_ms(const LoadSnapshot& load, std::int32_t num_ahead, std::int32_t num_reserved) {
  const std::int32_t num_short = num_ahead + num_reserved - load.num_free_seats;
  if (num_short < 0) return 0.0;
  std::vector<double> seats = load.busy_seats_ms;
  // Those that take the seats that are free now.
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

// What a tenant is given without a break: until it has had as much as the one of the others who had least.
double tokens_before_others(const LoadSnapshot& load, std::string_view tenant) {
  double least = std::numeric_limits<double>::infinity();
  for (const WaitingGroup& group : load.groups) {
    if (group.tenant != tenant) least = std::min(least, group.served_tokens);
  }
  return std::max(0.0, least - load.served_tokens(tenant));
}

// What of the time a tenant's prompts get: while others keep coming, what it has been given lately, but at
// least an equal part.
double part_of(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant) {
  if (config.policy != WaitingPolicy::kSloValue) return 1.0;
  const auto group = std::ranges::find(load.groups, tenant, &WaitingGroup::tenant);
  const bool is_there = group != load.groups.end();
  const double equal_part = 1.0 / std::max(1, load.num_tenants + (is_there ? 0 : 1));
  return is_there ? std::max(group->recent_share, equal_part) : equal_part;
}

// Until a tenant's own prompts are computed: those it is next for without a break, and the rest in its part
// of the time.
double own_wait_ms(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
                   const PromptWork& prompts) {
  if (prompts.num_tokens == 0) return 0.0;
  const double at_once = tokens_before_others(load, tenant) / static_cast<double>(prompts.num_tokens);
  const double rest = std::max(0.0, 1.0 - at_once);
  return load.pace.ms(prompts) * (1.0 - rest + rest / part_of(load, config, tenant));
}

bool runs_prefill_only(const LoadSnapshot& load) {
  return std::ranges::any_of(load.groups, [](const WaitingGroup& group) {
    return group.prefill_only.num_tokens > 0 || group.running_prefill_only.num_tokens > 0;
  });
}

}  // namespace

void LoadSnapshot::clear() {
  busy_seats_ms.clear();
  num_free_seats = 0;
  hold_ms = 0.0;
  num_holding = 0;
  pace = {};
  usual_answer_tokens = 0;
  full_step_ms = 0.0;
  typical_prompt_ms = 0.0;
  groups.clear();
  entry_tokens = 0.0;
  absent.clear();
  num_tenants = 0;
  num_reserved_seats = 0;
  seat_share = 0;
}

void LoadSnapshot::add_holding(std::int32_t num_sequences, std::int32_t max_tokens) {
  num_holding += num_sequences;
  hold_ms += full_step_ms * std::min(usual_answer_tokens, max_tokens) * num_sequences;
}

WaitingGroup& LoadSnapshot::group(std::string_view tenant, std::int32_t priority, double served_tokens) {
  const auto found = std::ranges::find_if(
      groups, [&](const WaitingGroup& g) { return g.tenant == tenant && g.priority == priority; });
  if (found != groups.end()) return *found;
  return groups.emplace_back(
      WaitingGroup{.tenant = std::string(tenant), .priority = priority, .served_tokens = served_tokens});
}

double LoadSnapshot::served_tokens(std::string_view tenant) const {
  const auto present = std::ranges::find(groups, tenant, &WaitingGroup::tenant);
  if (present != groups.end()) return present->served_tokens;
  const auto known = std::ranges::find(absent, tenant, &AbsentTenant::tenant);
  return known != absent.end() ? known->served_tokens : entry_tokens;
}

bool LoadSnapshot::has_backlog() const {
  return std::ranges::any_of(groups, [](const WaitingGroup& group) {
    return group.num_sequences > 0 || group.running_prompts.num_tokens > 0;
  });
}

StartForecast forecast_start(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
                             std::int32_t priority, const PromptWork& prompt, bool is_prefill_only) {
  const Ahead ahead = ahead_of(load, config, tenant, priority, prompt, is_prefill_only);
  const double slowdown = !is_prefill_only && runs_prefill_only(load) ? 2.0 : 1.0;
  const auto group = std::ranges::find(load.groups, tenant, &WaitingGroup::tenant);
  const bool has_its_share = group != load.groups.end() && group->num_running >= load.seat_share;
  const double seat_ms = seat_wait_ms(load, static_cast<std::int32_t>(ahead.num_sequences),
                                      has_its_share ? load.num_reserved_seats : 0);
  const double own_ms = own_wait_ms(load, config, tenant, ahead.own_prompts);
  return {.wait_ms = std::max({seat_ms, slowdown * load.pace.ms(ahead.prompts), slowdown * own_ms}),
          .prefill_ms = slowdown * load.pace.ms(prompt),
          .typical_ms = load.typical_prompt_ms};
}

bool is_owed(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant) {
  if (config.policy != WaitingPolicy::kSloValue) return false;
  const double least = load.served_tokens(tenant) + turn_tokens(load, config);
  return std::ranges::any_of(load.groups,
                             [&](const WaitingGroup& group) { return group.served_tokens > least; });
}

double target_ms_of(double ttft_target_ms, std::int32_t priority) {
  return priority > 0 ? kPatienceOfLowerClasses * ttft_target_ms : ttft_target_ms;
}

double reachable_target_ms(double target_ms, double prefill_ms) {
  return target_ms > 0.0 ? std::max(target_ms, kMostSlowdown * prefill_ms) : 0.0;
}

bool gives_way(const Pace& pace, const PromptWork& prompt, double target_ms) {
  return target_ms > 0.0 && pace.ms(prompt) > target_ms;
}

double excess_ms(const StartForecast& forecast, double target_ms, double patience_targets) {
  const double patient_ms = patience_targets * std::max(target_ms, kTypicalPrompts * forecast.typical_ms);
  return forecast.wait_ms + forecast.prefill_ms - std::max(patient_ms, kMostSlowdown * forecast.prefill_ms);
}

}  // namespace kvasir::sched
