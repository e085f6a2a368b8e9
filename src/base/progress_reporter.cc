#include "base/progress_reporter.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.h"

namespace kvasir {
namespace {

constexpr int kDefaultColumns = 80;
constexpr int kMinColumns = 40;
constexpr int kMaxColumns = 120;
constexpr int kColumnsForText = 56;  // the longest line without its bar

int columns_of(std::FILE* stream) {
  winsize size = {};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return std::clamp<int>(size.ws_col, kMinColumns, kMaxColumns);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

ProgressReporter::ProgressReporter(const Config& config)
    : config_(config),
      is_terminal_(config.is_terminal.value_or(::isatty(::fileno(config.stream)) == 1)),
      width_(is_terminal_ ? columns_of(config.stream) : kDefaultColumns),
      phase_begin_(std::chrono::steady_clock::now()),
      last_shown_(is_terminal_ ? phase_begin_ - config.redraw_interval : phase_begin_) {}

void ProgressReporter::report_bytes(std::string_view phase, std::int64_t done, std::int64_t total) {
  enter(phase, done);
  if (!due()) return;
  std::string text = fmt::format("{:<12}", phase);
  if (total > 0) {
    const double fraction = static_cast<double>(done) / static_cast<double>(total);
    text += fmt::format("{} {:3.0f}%  {} of {}", bar(fraction), 100 * fraction, format_bytes(done),
                        format_bytes(total));
  } else if (done > 0) {
    text += format_bytes(done);
  }
  const double seconds = seconds_since(phase_begin_);
  if (seconds > 1 && done > phase_begin_bytes_) {
    const double rate = static_cast<double>(done - phase_begin_bytes_) / seconds;
    text += fmt::format("  {}/s", format_bytes(static_cast<std::int64_t>(rate)));
  }
  show(text);
}

void ProgressReporter::report_fraction(std::string_view phase, double fraction) {
  enter(phase, 0);
  if (due()) show(fmt::format("{:<12}{} {:3.0f}%", phase, bar(fraction), 100 * fraction));
}

void ProgressReporter::note(std::string_view line) {
  if (config_.quiet) return;
  clear();
  write(fmt::format("{}\n", line));
}

void ProgressReporter::clear() {
  if (shown_columns_ == 0) return;
  write(fmt::format("\r{:{}}\r", "", shown_columns_));
  shown_columns_ = 0;
}

// The rate counts from where a phase was first seen: a transfer may start in the middle.
void ProgressReporter::enter(std::string_view phase, std::int64_t done) {
  if (phase == phase_ && done >= phase_begin_bytes_) return;
  phase_ = phase;
  phase_begin_bytes_ = done;
  phase_begin_ = std::chrono::steady_clock::now();
}

bool ProgressReporter::due() {
  if (config_.quiet) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_shown_ < (is_terminal_ ? config_.redraw_interval : config_.line_interval)) return false;
  last_shown_ = now;
  return true;
}

void ProgressReporter::show(const std::string& text) {
  if (!is_terminal_) {
    write(text + '\n');
  } else {
    // Padded over the rest of a longer bar; the last column stays free so that no terminal wraps.
    const std::string line = text.substr(0, static_cast<std::size_t>(width_ - 1));
    write(fmt::format("\r{:<{}}", line, shown_columns_));
    shown_columns_ = std::max(line.size(), shown_columns_);
  }
}

void ProgressReporter::write(const std::string& text) {
  std::fputs(text.c_str(), config_.stream);
  std::fflush(config_.stream);
}

std::string ProgressReporter::bar(double fraction) const {
  const int columns = width_ - kColumnsForText;
  if (!is_terminal_ || columns < 8) return {};
  const auto filled = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * columns);
  return fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", static_cast<std::size_t>(columns) - filled);
}

}  // namespace kvasir
