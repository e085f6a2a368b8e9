#include "spec/draft_gate.h"

#include <algorithm>

namespace kvasir::spec {
namespace {

constexpr double kExpectedPassShare = 0.2;  // of a step, before a pass was seen
// Tokens for the time, over those of a step without guesses.
constexpr double kLeastWorthAwake = 1.02, kLeastWorthDozing = 1.25;

}  // namespace

// The time of a pass over that of a step without guesses.
double DraftGate::pass_share(std::int32_t num_streams) const {
  return pass_ms_ == 0.0 ? kExpectedPassShare : pass_ms_ / costs_.base_ms(num_streams);
}

void DraftGate::observe_passes(std::int32_t num_passes, double milliseconds) {
  if (num_passes == 0) return;
  const double told = milliseconds / num_passes;
  // One that was held up says little.
  pass_ms_ = pass_ms_ == 0.0 ? told : pass_ms_ + (std::min(told, 2.0 * pass_ms_) - pass_ms_) / 8;
}

std::span<const std::int32_t> DraftGate::choose(std::span<const Stream> streams) {
  const auto num_streams = static_cast<std::int32_t>(streams.size());
  chosen_.assign(streams.size(), 0);
  if (num_streams == 0 || num_streams > RowCosts::kMaxStreams) return chosen_;
  pass_time();
  if (is_asleep()) return chosen_;
  const bool is_plain = costs_.base_ms(num_streams) == 0.0 || num_since_plain_ >= kPlainEvery;
  if (is_plain) return chosen_;
  std::vector<std::int32_t> taken(streams.size(), 0);
  double num_expected = num_streams;
  double best = num_streams * least_worth();  // tokens for the time of a step without guesses
  std::int32_t num_passes = 0;
  for (std::int32_t num_guesses = 1; num_guesses <= RowCosts::kMaxGuesses; ++num_guesses) {
    std::size_t next = 0;
    double most = 0.0;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const auto depth = static_cast<std::size_t>(taken[i]);
      const std::vector<double>& survival = streams[i].survival;
      if (depth < survival.size() && survival[depth] > most) {
        most = survival[depth];
        next = i;
      }
    }
    if (most <= 0.0) break;
    ++taken[next];
    num_expected += most;
    if (streams[next].needs_passes) num_passes = std::max(num_passes, taken[next]);
    const double passes = num_passes == 0 ? 0.0 : num_passes * pass_share(num_streams);
    const double worth = num_expected / (costs_.ratio(num_streams, num_guesses) + passes);
    if (worth <= best) continue;
    best = worth;
    chosen_ = taken;
  }
  return chosen_;
}

void DraftGate::observe(std::int32_t num_streams, std::int32_t num_guesses, std::int32_t num_tokens,
                        double milliseconds, double draft_ms) {
  if (num_streams < 1 || num_streams > RowCosts::kMaxStreams) return;
  if (num_guesses > 0 && costs_.base_ms(num_streams) > 0.0) {
    times_.expected_ms += costs_.base_ms(num_streams) * costs_.ratio(num_streams, num_guesses);
    times_.ms += milliseconds;
  }
  costs_.observe(num_streams, num_guesses, milliseconds);
  if (num_guesses == 0) {
    num_since_plain_ = 0;
    return;
  }
  ++num_since_plain_;
  if (costs_.base_ms(num_streams) == 0.0) return;
  num_tokens_ += num_tokens;
  num_plain_tokens_ += num_streams * (milliseconds + draft_ms) / costs_.base_ms(num_streams);
  if (++num_judged_ == kJudgedSteps) judge();
}

// By the cheapest rows that a step may have more, and with a margin: rows are learned.
double DraftGate::least_survival(std::int32_t num_streams) const {
  constexpr double kMargin = 0.7;
  double least = num_streams;
  for (std::int32_t rows = 1; rows <= RowCosts::kMaxGuesses; ++rows) {
    least = std::min(least, num_streams * (costs_.ratio(num_streams, rows) - 1.0) / rows);
  }
  return kMargin * least;
}

double DraftGate::least_worth() const { return depth_ == Depth::kAwake ? kLeastWorthAwake : kLeastWorthDozing; }

// Out of a sleep it dozes first.
void DraftGate::pass_time() {
  if (depth_ == Depth::kAwake || --num_to_sleep_ > 0) return;
  const bool was_asleep = is_asleep();
  depth_ = was_asleep ? Depth::kDozing : Depth::kAwake;
  num_to_sleep_ = was_asleep ? kLeastSleep : 0;
}

// Sure guesses that pay say nothing of doubtful ones, so they do not end a doze.
void DraftGate::judge() {
  const bool pays = num_tokens_ > num_plain_tokens_;
  if (!pays) {
    depth_ = depth_ == Depth::kAwake ? Depth::kDozing : Depth::kAsleep;
    num_to_sleep_ = next_sleep_;
    next_sleep_ = std::min(2 * next_sleep_, kMostSleep);
  } else if (depth_ == Depth::kAwake) {
    next_sleep_ = kLeastSleep;
  }
  num_judged_ = 0;
  num_tokens_ = num_plain_tokens_ = 0.0;
}

}  // namespace kvasir::spec
