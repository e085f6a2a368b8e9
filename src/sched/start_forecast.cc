#include "sched/start_forecast.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

namespace kvasir::sched {
namespace {

constexpr double kPatienceOfLowerClasses = 30.0;
constexpr std::int64_t kTypicalPromptTokens = 512;
constexpr double kTypicalPrompts = 4.0;
constexpr double kMostSlowdown = 1.25;
constexpr double kCalmMs = 60'000.0;
constexpr double kBurstTargets = 3.0;

struct Ahead {
  std::int32_t num_sequences = 0;
  PromptWork prompts;
};

// Those that start before one that comes now, by the order of waiting_order.h. Within a turn of a tenant all
// count: what value will make of them is not known.
Ahead ahead_of(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
               std::int32_t priority) {
  const WaitingKey own = key_of(config, {.arrival = std::numeric_limits<std::int64_t>::max(),
                                         .priority = priority,
                                         .held_token_ms = 1.0,
                                         .served_tokens = load.served_tokens(tenant)});
  Ahead ahead;
  for (const WaitingGroup& group : load.groups) {
    const WaitingKey key = key_of(
        config, {.priority = group.priority, .held_token_ms = 1.0, .served_tokens = group.served_tokens});
    const bool is_behind = own < key;
    // Who has begun is before all that wait; by value it is before its own turn and those behind
    // (scheduler.h).
    if (!is_behind || config.policy != WaitingPolicy::kSloValue) {
      ahead.prompts += group.running_prompts;
    }
    if (is_behind) continue;
    ahead.num_sequences += group.num_sequences;
    ahead.prompts += group.prompts;
  }
  return ahead;
}

// Until a seat is free when so many take theirs before: those that do keep it for the mean time.
double seat_wait_ms(const LoadSnapshot& load, std::int32_t num_ahead) {
  const std::int32_t num_short = num_ahead - load.num_free_seats;
  if (num_short < 0) return 0.0;
  std::vector<double> seats = load.busy_seats_ms;
  // Those that take the seats that are free now.
  seats.insert(seats.end(), static_cast<std::size_t>(load.num_free_seats), load.mean_hold_ms);
  if (seats.empty()) return 0.0;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends(std::greater<>{}, std::move(seats));
  for (std::int32_t i = 0; i < num_short; ++i) {
    const double end = ends.top();
    ends.pop();
    ends.push(end + load.mean_hold_ms);
  }
  return ends.top();
}

}  // namespace

void LoadSnapshot::clear() {
  busy_seats_ms.clear();
  num_free_seats = 0;
  mean_hold_ms = 0.0;
  pace = {};
  groups.clear();
  entry_tokens = 0.0;
  absent.clear();
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

StartForecast forecast_start(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
                             std::int32_t priority, const PromptWork& prompt) {
  const Ahead ahead = ahead_of(load, config, tenant, priority);
  PromptWork typical;
  typical.add(0, kTypicalPromptTokens);
  return {.wait_ms = std::max(seat_wait_ms(load, ahead.num_sequences), load.pace.ms(ahead.prompts)),
          .prefill_ms = load.pace.ms(prompt),
          .typical_ms = load.pace.ms(typical)};
}

double target_ms_of(double ttft_target_ms, std::int32_t priority) {
  return priority > 0 ? kPatienceOfLowerClasses * ttft_target_ms : ttft_target_ms;
}

double patience_targets(double ms_since_refusal) { return ms_since_refusal > kCalmMs ? kBurstTargets : 1.0; }

double excess_ms(const StartForecast& forecast, double target_ms) {
  const double allowed_ms =
      std::max({target_ms, kTypicalPrompts * forecast.typical_ms, kMostSlowdown * forecast.prefill_ms});
  return forecast.wait_ms + forecast.prefill_ms - allowed_ms;
}

}  // namespace kvasir::sched
