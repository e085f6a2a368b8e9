#include "base/utf8.h"

#include <cstddef>

namespace kvasir {
namespace {

// The bytes that may follow a lead byte: how many continuation bytes, and the range of the first of them (the
// others are 80..BF). The narrow ranges keep out overlong forms, surrogates and code points above U+10FFFF.
struct Lead {
  int num_continuations;
  unsigned char low;
  unsigned char high;
};

constexpr Lead kInvalidLead{-1, 0, 0};

constexpr Lead classify(unsigned char byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte < 0xC2) return kInvalidLead;
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte < 0xF0) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte < 0xF4) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return kInvalidLead;
}

}  // namespace

Utf8Prefix utf8_prefix(std::string_view text) {
  const Lead lead = classify(static_cast<unsigned char>(text[0]));
  if (lead.num_continuations < 0) return {1, false};
  for (int i = 1; i <= lead.num_continuations; ++i) {
    if (static_cast<std::size_t>(i) >= text.size()) return {i, false};
    const auto byte = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {i, false};
  }
  return {lead.num_continuations + 1, true};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Prefix prefix = utf8_prefix(text);
    if (!prefix.valid) return false;
    text.remove_prefix(static_cast<std::size_t>(prefix.num_bytes));
  }
  return true;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Prefix prefix = utf8_prefix(text);
    const auto length = static_cast<std::size_t>(prefix.num_bytes);
    out += prefix.valid ? text.substr(0, length) : kReplacementCharacter;
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace kvasir
