// The terminal that a person sits at, if one does.
#pragma once

#include <termios.h>

#include <optional>

namespace kvasir::cli {

// Columns of the window behind a stream, as they are now; 80 when it does not say.
int terminal_columns(int fd);

// One that knows no escape codes: TERM is "dumb", empty or not set.
bool is_dumb_terminal();

// NO_COLOR is set and not empty (no-color.org).
bool wants_no_colour();

// While it lives, a signal that ends the process (SIGTERM, SIGHUP, SIGQUIT) gives the terminal back first:
// its modes as they were when this was made, no colours, pastes not marked. Signals that are handled or
// ignored stay so. One at a time, for the terminal is one.
class TerminalAtExit {
 public:
  TerminalAtExit();
  TerminalAtExit(const TerminalAtExit&) = delete;
  TerminalAtExit& operator=(const TerminalAtExit&) = delete;
  ~TerminalAtExit();
};

// While it lives, typed text does not show. The text waits for the next reader, and Ctrl-C still signals.
class HiddenTyping {
 public:
  HiddenTyping();
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;
  ~HiddenTyping();

 private:
  std::optional<termios> before_;  // nothing: the standard input is no terminal
};

}  // namespace kvasir::cli
