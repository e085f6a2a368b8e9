// How a piece of text looks on a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir::cli {

// Colours of the terminal's own palette, so that they fit its background.
enum class TextColour : std::uint8_t { kNone, kRed, kGreen, kMagenta, kCyan };

struct TextStyle {
  bool bold = false;
  bool italic = false;
  bool underlined = false;
  bool struck = false;
  bool dim = false;
  TextColour colour = TextColour::kNone;

  bool operator==(const TextStyle&) const = default;
};

// Text of one style; no line break in it.
struct StyledText {
  std::string text;
  TextStyle style;

  bool operator==(const StyledText&) const = default;
};

}  // namespace kvasir::cli
