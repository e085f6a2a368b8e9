// Finds stop strings in text that arrives in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir {

// Holds text back only as long as it may be the start of a stop string. With pieces that are whole characters
// and stop strings that are valid UTF-8, what it hands out is whole characters too.
//
// When several stop strings end in the same piece, the one that starts first wins, of those the longest.
// Thread safety: none. Invariant: less is held back than the longest stop string has.
class StopMatcher {
 public:
  struct Piece {
    std::string text;                        // ready to show
    std::optional<std::string> stop_string;  // set once: nothing comes after it
  };

  // `stops` are not empty strings and outlive the matcher. include_stop: the stop string is shown too.
  StopMatcher(std::span<const std::string> stops, bool include_stop)
      : stops_(stops), include_stop_(include_stop) {}

  // Whether an answer may end behind so many bytes of its text.
  using MayEnd = std::function<bool(std::size_t num_bytes)>;

  // Takes the next text. A stop string in it counts where the answer, as it would be shown, may end.
  Piece push(std::string_view text, const MayEnd& may_end = [](std::size_t) { return true; });
  // The text still held back, when no more comes.
  std::string flush();

 private:
  struct Match {
    std::size_t begin = 0;
    const std::string* stop = nullptr;  // null: none
  };

  Match first_match(std::size_t num_old_bytes, const MayEnd& may_end) const;
  std::size_t num_bytes_to_hold() const;

  const std::span<const std::string> stops_;
  const bool include_stop_;
  std::string held_;
  std::size_t num_shown_bytes_ = 0;
};

}  // namespace kvasir
