#include "base/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace kvasir {
namespace {

// C0 controls and DEL are one byte; U+0080..U+009F (two bytes, lead 0xc2) steer terminals too.
bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead < 0x20 || lead == 0x7f;
  return lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  std::size_t position = 0;
  while (position < text.size()) {
    const std::string_view rest = text.substr(position);
    const Utf8Prefix prefix = utf8_prefix(rest);
    const std::string_view character = rest.substr(0, static_cast<std::size_t>(prefix.num_bytes));
    if (position + character.size() > max_bytes) return out + "...";
    if (!prefix.valid || is_control(character)) {
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += character;
    }
    position += character.size();
  }
  return out;
}

}  // namespace kvasir
