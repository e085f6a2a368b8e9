#include "admission/ttft_slack.h"

#include <chrono>

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

}  // namespace

double TtftSlack::targets(bool has_backlog, bool is_underserved, TimePoint now) {
  if (!has_backlog || !backlog_began_) backlog_began_ = now;
  const auto was_refused_within = [&](TimePoint::duration time) {
    return last_refusal_ && now - *last_refusal_ < time;
  };
  if (was_refused_within(kPressed) && !is_underserved) return kPressedTargets;
  const bool is_burst = now - *backlog_began_ < kAtOnce && !was_refused_within(kCalm);
  return is_burst ? kBurstTargets : 1.0;
}

}  // namespace kvasir::admission
