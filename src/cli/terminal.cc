#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/env.h"

namespace kvasir::cli {
namespace {

constexpr int kDefaultColumns = 80;

}  // namespace

int terminal_columns(int fd) {
  winsize size = {};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

bool is_dumb_terminal() { return env_string("TERM").value_or("dumb") == "dumb"; }

bool wants_no_colour() { return env_string("NO_COLOR").has_value(); }

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
