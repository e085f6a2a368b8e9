#include "text/utf8.h"

#include <algorithm>

namespace kvasir::text {
namespace {

// The bytes a lead byte promises and the range its second byte must lie in, which is what rules out
// overlong forms (E0, F0), surrogates (ED) and code points above 10FFFF (F4).
struct LeadByte {
  std::size_t size_bytes = 0;  // 0: no character starts with this byte
  unsigned second_min = 0x80;
  unsigned second_max = 0xBF;
};

LeadByte lead_byte(unsigned byte) {
  if (byte < 0x80) return {.size_bytes = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.size_bytes = 2};
  if (byte == 0xE0) return {.size_bytes = 3, .second_min = 0xA0};
  if (byte == 0xED) return {.size_bytes = 3, .second_max = 0x9F};
  if (byte < 0xF0) return {.size_bytes = 3};
  if (byte == 0xF0) return {.size_bytes = 4, .second_min = 0x90};
  if (byte < 0xF4) return {.size_bytes = 4};
  if (byte == 0xF4) return {.size_bytes = 4, .second_max = 0x8F};
  return {};
}

}  // namespace

Utf8Unit utf8_unit_at(std::string_view bytes, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[position + i]); };
  const LeadByte lead = lead_byte(byte(0));
  if (lead.size_bytes == 0) return {.kind = Utf8Unit::Kind::kInvalid, .size_bytes = 1};
  const std::size_t available = std::min(lead.size_bytes, bytes.size() - position);
  for (std::size_t i = 1; i < available; ++i) {
    const unsigned min = i == 1 ? lead.second_min : 0x80;
    const unsigned max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) return {.kind = Utf8Unit::Kind::kInvalid, .size_bytes = i};
  }
  if (available < lead.size_bytes) return {.kind = Utf8Unit::Kind::kIncomplete, .size_bytes = available};
  return {.kind = Utf8Unit::Kind::kCharacter,
          .size_bytes = lead.size_bytes,
          .code_point = code_point_at(bytes, position).value};
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto append = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto continuation = [&](int shift) { append(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | code_point >> 6);
    continuation(0);
  } else if (code_point < 0x10000) {
    append(0xE0 | code_point >> 12);
    continuation(6);
    continuation(0);
  } else {
    append(0xF0 | code_point >> 18);
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

std::string replace_invalid_bytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t position = 0; position < bytes.size();) {
    const Utf8Unit unit = utf8_unit_at(bytes, position);
    if (unit.kind == Utf8Unit::Kind::kCharacter) {
      text.append(bytes, position, unit.size_bytes);
    } else {
      for (std::size_t i = 0; i < unit.size_bytes; ++i) text.append(kReplacementCharacter);
    }
    position += unit.size_bytes;
  }
  return text;
}

}  // namespace kvasir::text
