// Styled characters as the bytes that a terminal takes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/markdown/text_style.h"

namespace kvasir::cli {

// Where characters and line breaks go once it is decided where lines end.
class LineSink {
 public:
  virtual ~LineSink() = default;
  virtual void put(std::string_view text, const TextStyle& style) = 0;
  virtual void new_line() = 0;
};

// Writes SGR sequences (ECMA-48) where the style changes and ends every line without a style. Nothing that
// was written is written again.
//
// Thread safety: none. Requires: no controls in the text.
class StyledOutput : public LineSink {
 public:
  using ByteSink = std::function<void(std::string_view bytes)>;
  StyledOutput(ByteSink sink, bool colours) : sink_(std::move(sink)), colours_(colours) {}

  void put(std::string_view text, const TextStyle& style) override;
  void new_line() override;

  // Hands on what has gathered since the last call. A line that goes on keeps its style.
  void flush();

 private:
  void change_style(const TextStyle& style);

  const ByteSink sink_;
  const bool colours_;
  TextStyle style_;
  std::string bytes_;
};

}  // namespace kvasir::cli
