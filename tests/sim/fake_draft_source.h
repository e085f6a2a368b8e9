// Guesses what sequences generate next: right as often as the seed says, because the simulation knows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "sim/seeded_random.h"

namespace kvasir::sim {

// A pure function of the seed and of the order of calls. Not thread-safe.
class FakeDraftSource {
 public:
  FakeDraftSource(std::uint64_t seed, std::int32_t vocab_size);

  // Nothing for half of the seeds, and now and then for the others. `coming`: the tokens that the sequence
  // will generate when it is left alone; behind them any are guessed. Valid until the next call.
  std::span<const TokenId> propose(std::span<const TokenId> coming);

 private:
  SeededRandom random_;
  const std::int32_t vocab_size_;
  const bool is_on_;
  const std::int32_t percent_right_;
  const std::int32_t max_tokens_;
  std::vector<TokenId> draft_;
};

}  // namespace kvasir::sim
