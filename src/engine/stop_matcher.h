// Finds stop strings in text that arrives in pieces.
#pragma once

#include <cstddef>
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

  // Takes the next text. With may_stop false, stop strings that end in it do not count.
  Piece push(std::string_view text, bool may_stop);
  // The text still held back, when no more comes.
  std::string flush();

 private:
  struct Match {
    std::size_t begin = 0;
    const std::string* stop = nullptr;  // null: none
  };

  Match first_match(std::size_t num_old_bytes) const;
  std::size_t num_bytes_to_hold() const;

  const std::span<const std::string> stops_;
  const bool include_stop_;
  std::string held_;
};

}  // namespace kvasir
