#include "text/detokenizer.h"

#include <cstddef>

#include "text/utf8.h"

namespace kvasir::text {

std::string StreamingDetokenizer::push(TokenId id) {
  held_bytes_ += tokenizer_.decode_next(id, options_.render_special, at_text_start_);
  return take_characters();
}

std::string StreamingDetokenizer::flush() {
  std::string text(held_bytes_.empty() ? std::string_view() : kReplacementCharacter);
  held_bytes_.clear();
  at_text_start_ = options_.at_text_start;
  return text;
}

// Moves everything but an unfinished character out of the held bytes.
std::string StreamingDetokenizer::take_characters() {
  std::string text;
  std::size_t position = 0;
  while (position < held_bytes_.size()) {
    const Utf8Unit unit = utf8_unit_at(held_bytes_, position);
    if (unit.kind == Utf8Unit::Kind::kIncomplete) break;
    if (unit.kind == Utf8Unit::Kind::kCharacter) {
      text.append(held_bytes_, position, unit.size_bytes);
    } else {
      text.append(kReplacementCharacter);
    }
    position += unit.size_bytes;
  }
  held_bytes_.erase(0, position);
  return text;
}

}  // namespace kvasir::text
