// Shows how far a long piece of work has come.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir {

// On a terminal: one bar, redrawn in place about ten times a second. Elsewhere: a whole line every five
// seconds, so that work which ends sooner leaves none. Plain characters only, no escape codes either way.
//
// Thread safety: none; the thread that does the work reports.
class ProgressReporter {
 public:
  struct Config {
    std::FILE* stream = stderr;
    bool quiet = false;                    // says nothing at all
    std::optional<bool> is_terminal = {};  // nothing: ask the stream
    std::chrono::milliseconds redraw_interval{100};
    std::chrono::milliseconds line_interval{5000};
  };

  explicit ProgressReporter(const Config& config);
  ProgressReporter(const ProgressReporter&) = delete;
  ProgressReporter& operator=(const ProgressReporter&) = delete;
  ~ProgressReporter() { clear(); }

  // `total` 0: not known; then only what is done shows.
  void report_bytes(std::string_view phase, std::int64_t done, std::int64_t total);
  // `fraction` in [0, 1].
  void report_fraction(std::string_view phase, double fraction);

  // A line of its own, above the bar.
  void note(std::string_view line);

  // Takes the bar away.
  void clear();

 private:
  void enter(std::string_view phase, std::int64_t done);
  bool due();
  void show(const std::string& text);
  // Text that cannot be written, for example to a closed stream, is left out.
  void write(const std::string& text);
  std::string bar(double fraction) const;

  const Config config_;
  const bool is_terminal_;
  const int width_;  // columns of the terminal
  std::string phase_;
  std::int64_t phase_begin_bytes_ = 0;
  std::chrono::steady_clock::time_point phase_begin_;
  std::chrono::steady_clock::time_point last_shown_;
  std::size_t shown_columns_ = 0;  // of the bar on the screen
};

}  // namespace kvasir
