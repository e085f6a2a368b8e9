#include "cli/markdown/terminal_text.h"

#include <cstddef>

#include "base/printable.h"
#include "base/utf8.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxCharacterBytes = 4;

}  // namespace

void TerminalText::write(std::string_view piece) {
  for (const char c : piece) {
    held_ += c;
    take_held(false);
  }
}

void TerminalText::finish() { take_held(true); }

void TerminalText::take_held(bool is_end) {
  while (!held_.empty()) {
    if (held_ == "\r" && !is_end) return;
    if (held_.starts_with("\r\n")) held_.erase(0, 1);
    const Utf8Prefix prefix = utf8_prefix(held_);
    const auto length = static_cast<std::size_t>(prefix.num_bytes);
    const bool may_become_whole = !prefix.valid && length == held_.size() && length < kMaxCharacterBytes;
    if (may_become_whole && !is_end) return;
    put(std::string_view(held_).substr(0, length), prefix.valid);
    held_.erase(0, length);
  }
}

void TerminalText::put(std::string_view character, bool valid) {
  if (character == "\n" || character == "\t") return sink_(character);
  const std::string shown = printable(character);
  if (valid && shown == character) return sink_(character);
  for (const char& c : shown) sink_(std::string_view(&c, 1));
}

}  // namespace kvasir::cli
