// Cells that became ghosts or came back a short while ago: they rest before they go the other way.
#pragma once

#include <cstdint>
#include <vector>

namespace kvasir::kv {

// The moves of one sequence. Thread safety: none.
class RecentMoves {
 public:
  static constexpr std::int32_t kRestTokens = 32;

  struct Move {
    std::int32_t group = 0;
    std::int32_t cell = 0;
    std::int32_t block = 0;  // logical
    std::int32_t at_tokens = 0;
  };

  void add(const Move& move) { moves_.push_back(move); }
  // Those that have rested for long enough by now.
  void forget_before(std::int32_t num_tokens) {
    std::erase_if(moves_, [&](const Move& move) { return move.at_tokens + kRestTokens <= num_tokens; });
  }
  const std::vector<Move>& moves() const { return moves_; }

 private:
  std::vector<Move> moves_;
};

}  // namespace kvasir::kv
