// One line per event on stderr, for people or for machines.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

namespace kvasir {

class LineWriter;

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };
enum class LogFormat : std::uint8_t {
  kText,  // 2026-01-31T12:00:00.000Z info    loaded in 0.31 s
  kJson,  // {"time":"2026-01-31T12:00:00.000Z","level":"info","message":"loaded in 0.31 s"}
};

// Writes whole lines: control characters in a message are escaped, so neither a line break nor a terminal
// sequence from a request gets through, and lines of different threads do not mix. The level is coloured only
// when the stream is a terminal and NO_COLOR is not set. Owned by main and handed down; there is no global
// one.
//
// Thread safety: every member may be called from any thread.
class Logger {
 public:
  struct Config {
    LogLevel level = LogLevel::kInfo;  // quieter events are dropped
    LogFormat format = LogFormat::kText;
    std::FILE* stream = stderr;
    LineWriter* writer = nullptr;  // takes the lines instead, so that nobody waits for the stream's reader
  };

  explicit Logger(const Config& config);

  bool enabled(LogLevel level) const { return level >= config_.level; }

  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kDebug, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kInfo, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kWarning, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) {
    log(LogLevel::kError, format, std::forward<Args>(args)...);
  }

 private:
  template <class... Args>
  void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
  }
  void write(LogLevel level, std::string_view message);

  const Config config_;
  const bool coloured_;
  std::mutex mutex_;  // guards the stream
};

}  // namespace kvasir
