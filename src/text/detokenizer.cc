#include "text/detokenizer.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace kvasir::text {
namespace {

// Whether a text that does not start with a character may, once it goes on: it ends after a lead byte
// and some of the bytes that belong to it.
bool may_become_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  return lead >= 0xC2 && lead <= 0xF4 && static_cast<std::size_t>(utf8_prefix(text).num_bytes) == text.size();
}

}  // namespace

std::string StreamingDetokenizer::push(TokenId id) {
  const bool is_rendered = options_.render_special ||
                           std::ranges::find(options_.rendered_tokens, id) != options_.rendered_tokens.end();
  held_bytes_ += tokenizer_.decode_next(id, is_rendered, at_text_start_);
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
  std::string_view rest = held_bytes_;
  while (!rest.empty()) {
    const Utf8Prefix prefix = utf8_prefix(rest);
    if (!prefix.valid && may_become_character(rest)) break;
    const auto size_bytes = static_cast<std::size_t>(prefix.num_bytes);
    text += prefix.valid ? rest.substr(0, size_bytes) : kReplacementCharacter;
    rest.remove_prefix(size_bytes);
  }
  held_bytes_.erase(0, held_bytes_.size() - rest.size());
  return text;
}

}  // namespace kvasir::text
