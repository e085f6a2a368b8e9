#include "cli/chat/pasted_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace kvasir::cli {
namespace {

bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return (lead < 0x20 && lead != '\t' && lead != '\n') || lead == 0x7F;
  return lead == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string clean_paste(std::string_view text) {
  std::string lines;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      lines += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      lines += '\n';
    }
  }
  std::string out;
  const std::string valid = to_valid_utf8(lines);
  std::string_view rest = valid;
  while (!rest.empty()) {
    const std::string_view character = rest.substr(0, static_cast<std::size_t>(utf8_prefix(rest).num_bytes));
    if (!is_control(character)) out += character;
    rest.remove_prefix(character.size());
  }
  out.erase(out.find_last_not_of('\n') + 1);
  return out;
}

std::string PastedTexts::add(std::string text) {
  const auto num_lines = 1 + std::ranges::count(text, '\n');
  if (num_lines <= kMaxShownLines && text.size() <= kMaxShownBytes) return text;
  const std::string size =
      num_lines > 1 ? fmt::format("{} lines", num_lines) : fmt::format("{} bytes", text.size());
  pastes_.push_back({fmt::format("[paste {}: {}]", pastes_.size() + 1, size), std::move(text)});
  return pastes_.back().name;
}

std::string PastedTexts::expand(std::string_view line) const {
  std::string out;
  while (!line.empty()) {
    const auto paste =
        std::ranges::find_if(pastes_, [line](const Paste& p) { return line.starts_with(p.name); });
    out += paste == pastes_.end() ? line.substr(0, 1) : std::string_view(paste->text);
    line.remove_prefix(paste == pastes_.end() ? 1 : paste->name.size());
  }
  return out;
}

}  // namespace kvasir::cli
