#include "text/byte_alphabet.h"

#include <array>
#include <cstddef>

#include "base/code_point.h"
#include "base/utf8.h"

namespace kvasir::text {
namespace {

// Bytes that print as themselves in Latin-1 keep their code point, the 68 others follow from U+0100 on in
// order (GPT-2's bytes_to_unicode).
constexpr std::size_t kAlphabetEnd = 0x100 + 68;

constexpr std::array<int, kAlphabetEnd> kByteOf = [] {
  std::array<int, kAlphabetEnd> byte_of{};
  byte_of.fill(-1);
  std::size_t next = 0x100;
  for (int byte = 0; byte < 0x100; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
    byte_of[prints ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return byte_of;
}();

constexpr std::array<char32_t, 0x100> kLetterOf = [] {
  std::array<char32_t, 0x100> letter_of{};
  for (std::size_t letter = 0; letter < kAlphabetEnd; ++letter) {
    if (kByteOf[letter] >= 0)
      letter_of[static_cast<std::size_t>(kByteOf[letter])] = static_cast<char32_t>(letter);
  }
  return letter_of;
}();

}  // namespace

std::optional<std::string> decode_byte_alphabet(std::string_view text) {
  if (!is_valid_utf8(text)) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, position);
    if (code_point >= kAlphabetEnd || kByteOf[code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByteOf[code_point]));
    position += size_bytes;
  }
  return bytes;
}

std::string encode_byte_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(text, kLetterOf[static_cast<unsigned char>(byte)]);
  return text;
}

}  // namespace kvasir::text
