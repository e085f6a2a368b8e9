// How many texts a terminal has left.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "grammar/regex/byte_states.h"

namespace kvasir::grammar {

// Counts to kMany; whoever has as many texts or more has enough.
//
// Thread safety: none.
class TextCount {
 public:
  static constexpr std::uint32_t kMany = 1 << 16;

  // The states outlive this.
  explicit TextCount(ByteStates& states) : states_(states) {}

  // The ways from a state to an end, in bytes. Requires: not kDeadState.
  std::uint32_t behind(ByteStateId state);

 private:
  std::uint32_t count(ByteStateId state);

  ByteStates& states_;
  std::unordered_map<ByteStateId, std::uint32_t> known_;
};

}  // namespace kvasir::grammar
