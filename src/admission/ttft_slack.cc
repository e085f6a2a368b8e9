#include "admission/ttft_slack.h"

#include <chrono>
#include <cstddef>

namespace kvasir::admission {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// With Azure's conversations at four times the capacity, half a target takes nothing from the goodput of
// prompts of at most 512 tokens and 3% from that of longer ones, against three quarters (bench/schedule).
constexpr double kPressedTargets = 0.5;
constexpr double kBurstTargets = 2.0;
constexpr auto kPressed = seconds(2);
constexpr auto kCalm = seconds(60);
constexpr auto kAtOnce = milliseconds(500);
constexpr std::size_t kManyTenants = 64;

}  // namespace

double TtftSlack::targets(const Arrival& arrival, TimePoint now) {
  all_.note_arrival(arrival.has_backlog, now);
  History& own = history_of(arrival.tenant, now);
  own.note_arrival(arrival.has_own_backlog, now);
  if (arrival.is_underserved) return own.is_burst(now) ? kBurstTargets : 1.0;
  if (all_.was_refused_within(kPressed, now)) return kPressedTargets;
  return all_.is_burst(now) ? kBurstTargets : 1.0;
}

void TtftSlack::note_refusal(std::string_view tenant, TimePoint now) {
  all_.last_refusal = now;
  history_of(tenant, now).last_refusal = now;
}

void TtftSlack::History::note_arrival(bool has_backlog, TimePoint now) {
  if (!has_backlog || !backlog_began) backlog_began = now;
  last_arrival = now;
}

bool TtftSlack::History::was_refused_within(TimePoint::duration time, TimePoint now) const {
  return last_refusal && now - *last_refusal < time;
}

bool TtftSlack::History::is_burst(TimePoint now) const {
  return backlog_began && now - *backlog_began < kAtOnce && !was_refused_within(kCalm, now);
}

TtftSlack::History& TtftSlack::history_of(std::string_view tenant, TimePoint now) {
  if (const auto found = tenants_.find(tenant); found != tenants_.end()) return found->second;
  if (tenants_.size() >= kManyTenants) {
    std::erase_if(tenants_, [now](const auto& entry) { return now - entry.second.last_arrival > kCalm; });
  }
  History& history = tenants_[std::string(tenant)];
  history.last_arrival = now;
  return history;
}

}  // namespace kvasir::admission
