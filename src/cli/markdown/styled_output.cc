#include "cli/markdown/styled_output.h"

namespace kvasir::cli {
namespace {

// ECMA-48, 8.3.117.
std::string_view code_of(TextColour colour) {
  switch (colour) {
    case TextColour::kNone:
      return "";
    case TextColour::kRed:
      return ";31";
    case TextColour::kGreen:
      return ";32";
    case TextColour::kMagenta:
      return ";35";
    case TextColour::kCyan:
      return ";36";
  }
  return "";
}

}  // namespace

void StyledOutput::put(std::string_view text, const TextStyle& style) {
  TextStyle shown = style;
  if (!colours_) shown.colour = TextColour::kNone;
  change_style(shown);
  bytes_ += text;
}

void StyledOutput::new_line() {
  change_style({});
  bytes_ += '\n';
}

void StyledOutput::flush() {
  if (bytes_.empty()) return;
  sink_(bytes_);
  bytes_.clear();
}

void StyledOutput::change_style(const TextStyle& style) {
  if (style == style_) return;
  style_ = style;
  bytes_ += "\x1b[0";
  if (style.bold) bytes_ += ";1";
  if (style.dim) bytes_ += ";2";
  if (style.italic) bytes_ += ";3";
  if (style.underlined) bytes_ += ";4";
  if (style.struck) bytes_ += ";9";
  bytes_ += code_of(style.colour);
  bytes_ += 'm';
}

}  // namespace kvasir::cli
