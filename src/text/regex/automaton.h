// Regular expressions that match in one pass: the patterns of pre-tokenizers and normalizers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "text/regex/code_point_set.h"

namespace kvasir::text::regex {

// A deterministic automaton over classes of characters. It finds the match that a backtracking engine finds:
// alternatives in their order, greedy and lazy marks as written (a state is a list of places in the pattern, the
// preferred one first). It is built whole at once, so that threads share it without a lock.
//
// Time is linear in the text, for one match and for all matches of a text together.
//
// Thread safety: immutable.
class Automaton {
 public:
  // kBadFile: see parse() in syntax.h; or the pattern has more than 20,000 places or 10,000 states.
  static Result<Automaton> compile(std::string_view pattern);

  // visit(begin, end) for every match from the left on; they do not overlap, and empty ones are left out.
  // Requires: text is well-formed UTF-8.
  template <class Visit>
  void for_each_match(std::string_view text, Visit visit) const {
    Scan scan = {.text = text};
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = match_end(scan, begin);
      if (end > begin) visit(begin, end);
      begin = end > begin ? end : next_character(text, begin);
    }
  }

  // Whether it matches the empty text, before some character or at the end.
  bool matches_empty() const;
  std::size_t num_states() const { return num_classes_ == 0 ? 0 : transitions_.size() / num_classes_; }

 private:
  friend class AutomatonBuilder;

  // Findings of earlier attempts at a text: states at places from which no match can be reached.
  struct Scan {
    std::string_view text;
    std::vector<std::vector<bool>> failed = {};  // by state, then by place
  };

  // A transition is the next state << 1, and 1 if the text up to here matches. State 0 is the end.
  static constexpr std::uint32_t kMatched = 1;

  Automaton() = default;
  std::size_t match_end(Scan& scan, std::size_t begin) const;
  static std::size_t next_character(std::string_view text, std::size_t position);
  std::uint32_t class_of(char32_t code_point) const {
    return blocks_[std::size_t{block_of_[code_point >> kBlockBits]} << kBlockBits |
                   (code_point & kBlockMask)];
  }

  static constexpr std::uint32_t kBlockBits = 7;
  static constexpr std::uint32_t kBlockMask = (1u << kBlockBits) - 1;

  std::size_t num_classes_ = 0;          // of characters, and one more for the end of the text
  std::vector<std::uint16_t> block_of_;  // by code point >> 7
  std::vector<std::uint8_t> blocks_;     // classes, 128 a block
  std::vector<std::uint32_t>
      transitions_;  // [state][class]; the text's end is the last class; state 1 is the start
};

}  // namespace kvasir::text::regex
