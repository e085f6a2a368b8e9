#include "cli/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "base/env.h"

namespace kvasir::cli {
namespace {

constexpr int kDefaultColumns = 80;
constexpr std::array kEndingSignals = {SIGTERM, SIGHUP, SIGQUIT};
constexpr std::string_view kNoPasteMarksNoColours = "\x1b[?2004l\x1b[0m";

// The signal handler's data; set before there is a handler.
termios terminal_before;
bool knows_escape_codes = false;

// Only what POSIX lets a handler call. The signal is at its default again, and comes when this returns.
void give_terminal_back(int signal) {
  if (knows_escape_codes) {
    [[maybe_unused]] const ssize_t written =
        ::write(STDOUT_FILENO, kNoPasteMarksNoColours.data(), kNoPasteMarksNoColours.size());
  }
  ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  ::raise(signal);
}

void replace_handler(int signal, void (*from)(int), void (*to)(int), int flags) {
  struct sigaction action = {};
  if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != from) return;
  action = {};
  action.sa_handler = to;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

int terminal_columns(int fd) {
  winsize size = {};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

bool is_dumb_terminal() { return env_string("TERM").value_or("dumb") == "dumb"; }

bool wants_no_colour() { return env_string("NO_COLOR").has_value(); }

TerminalAtExit::TerminalAtExit() {
  if (::tcgetattr(STDIN_FILENO, &terminal_before) != 0) return;
  knows_escape_codes = ::isatty(STDOUT_FILENO) != 0 && !is_dumb_terminal();
  for (const int signal : kEndingSignals) {
    replace_handler(signal, SIG_DFL, &give_terminal_back, static_cast<int>(SA_RESETHAND));
  }
}

TerminalAtExit::~TerminalAtExit() {
  for (const int signal : kEndingSignals) replace_handler(signal, &give_terminal_back, SIG_DFL, 0);
}

HiddenTyping::HiddenTyping() {
  termios state = {};
  if (::tcgetattr(STDIN_FILENO, &state) != 0) return;
  before_ = state;
  // By the character: a line in canonical mode is cut after 4096 bytes, and its ends would not be what was
  // typed.
  state.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
  state.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &state);
}

HiddenTyping::~HiddenTyping() {
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

}  // namespace kvasir::cli
