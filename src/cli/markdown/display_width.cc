#include "cli/markdown/display_width.h"

#include <locale.h>
#include <wchar.h>

#include <cstddef>

#include "base/utf8.h"

namespace kvasir::cli {
namespace {

wchar_t code_point_of(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  const std::size_t length = character.size();
  unsigned code = length == 1 ? lead : length == 2 ? lead & 0x1Fu : length == 3 ? lead & 0x0Fu : lead & 0x07u;
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return static_cast<wchar_t>(code);
}

int width_of(wchar_t code) {
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t previous = ::uselocale(utf8);
  const int width = ::wcwidth(code);
  ::uselocale(previous);
  return width < 0 ? 1 : width;  // not assigned when the C library was made
}

}  // namespace

int character_width(std::string_view character) {
  return character.size() == 1 ? 1 : width_of(code_point_of(character));
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const auto length = static_cast<std::size_t>(utf8_prefix(text).num_bytes);
    width += character_width(text.substr(0, length));
    text.remove_prefix(length);
  }
  return width;
}

int display_width(const std::vector<StyledText>& parts) {
  int width = 0;
  for (const StyledText& part : parts) width += display_width(part.text);
  return width;
}

std::string_view trim_spaces(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

}  // namespace kvasir::cli
