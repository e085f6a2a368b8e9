// A model's bytes as characters that steer no terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kvasir::cli {

// Cuts a stream into whole characters of valid UTF-8. Controls, other than newline and tab, and bytes that
// are no UTF-8 come as the characters of \xNN; a carriage return before a newline is left out. The output
// does not depend on where the stream was cut into pieces.
//
// Thread safety: none.
class TerminalText {
 public:
  using Sink = std::function<void(std::string_view character)>;
  explicit TerminalText(Sink sink) : sink_(std::move(sink)) {}

  void write(std::string_view piece);
  // Writes the rest of a character that never became whole; the stream may go on.
  void finish();

 private:
  void take_held(bool is_end);
  void put(std::string_view character, bool valid);

  const Sink sink_;
  std::string held_;  // the beginning of a character, or a carriage return
};

}  // namespace kvasir::cli
