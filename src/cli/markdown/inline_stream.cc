#include "cli/markdown/inline_stream.h"

#include <cstddef>

#include "cli/markdown/inline_markdown.h"

namespace kvasir::cli {

void InlineStream::begin(const TextStyle& style) {
  style_ = style;
  held_.clear();
  before_ = ' ';
}

void InlineStream::put(std::string_view character) {
  const bool is_marker = is_inline_marker(character[0]);
  if (held_.empty()) {
    if (is_marker) {
      held_ = character;
      return take_held(false);
    }
    wrapper_.put(character, style_);
    before_ = character.back();
    return;
  }
  // A marker decides something, or the character behind one; so does too great a length. An address in <> may
  // turn out to be none with each character.
  const bool decides = is_marker || is_inline_marker(held_.back()) || held_.front() == '<' ||
                       held_.size() > kMaxUndecidedBytes;
  held_ += character;
  if (decides) take_held(false);
}

void InlineStream::end() { take_held(true); }

void InlineStream::take_held(bool is_complete) {
  const InlineText read = parse_inline(held_, {.style = style_,
                                               .before = before_,
                                               .is_complete = is_complete,
                                               .shows_code_marks = shows_code_marks_});
  if (read.num_bytes == 0) return;
  for (const StyledText& part : read.parts) wrapper_.put(part);
  before_ = held_[read.num_bytes - 1];
  held_.erase(0, read.num_bytes);
}

}  // namespace kvasir::cli
