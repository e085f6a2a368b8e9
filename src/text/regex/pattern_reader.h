// Reads a pattern character by character, and says where a fault is.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/code_point.h"
#include "base/printable.h"
#include "kvasir/result.h"

namespace kvasir::text::regex {

// Thread safety: none. Requires: the pattern is well-formed UTF-8. Faults are errors of the given kind.
class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern, ErrorKind kind = ErrorKind::kBadFile)
      : pattern_(pattern), kind_(kind) {
    for (std::size_t at = 0; at < pattern.size();) {
      const auto [code_point, size_bytes] = code_point_at(pattern, at);
      characters_ += code_point;
      at += size_bytes;
    }
  }

  bool at_end() const { return position_ == characters_.size(); }
  std::size_t position() const { return position_; }  // in characters
  void go_to(std::size_t position) { position_ = position; }
  // Requires: !at_end().
  char32_t peek() const { return characters_[position_]; }
  char32_t next() { return characters_[position_++]; }
  bool starts_with(std::u32string_view text) const {
    return std::u32string_view(characters_).substr(position_).starts_with(text);
  }
  // Goes on behind the character if it is the next one.
  bool take(char32_t wanted) {
    if (at_end() || peek() != wanted) return false;
    ++position_;
    return true;
  }

  // .. behind the text.
  bool take(std::u32string_view text) {
    if (!starts_with(text)) return false;
    position_ += text.size();
    return true;
  }

  std::unexpected<Error> fail(std::string_view what) const {
    return make_error(kind_, fmt::format("pattern '{}', character {}: {}",
                                                       printable(pattern_, 60), position_, what));
  }

 private:
  std::string pattern_;
  ErrorKind kind_;
  std::u32string characters_;
  std::size_t position_ = 0;
};

}  // namespace kvasir::text::regex
