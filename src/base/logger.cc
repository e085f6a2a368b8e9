#include "base/logger.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "base/env.h"
#include "base/json_writer.h"
#include "base/line_writer.h"
#include "base/printable.h"

namespace kvasir {
namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

std::string_view colour_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "\x1b[2m";
    case LogLevel::kInfo:
      return "\x1b[36m";
    case LogLevel::kWarning:
      return "\x1b[33m";
    case LogLevel::kError:
      return "\x1b[31m";
  }
  return "";
}

std::string utc_now() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto milliseconds = now.time_since_epoch().count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     milliseconds);
}

}  // namespace

Logger::Logger(const Config& config)
    : config_(config), coloured_(isatty(fileno(config.stream)) == 1 && !env_string("NO_COLOR")) {}

void Logger::write(LogLevel level, std::string_view message) {
  std::string line;
  if (config_.format == LogFormat::kJson) {
    JsonWriter json(line);
    json.begin_object().member("time", utc_now()).member("level", name_of(level));
    json.member("message", message).end_object();
  } else {
    line = fmt::format("{} {}{:<7}{} ", utc_now(), coloured_ ? colour_of(level) : "", name_of(level),
                       coloured_ ? "\x1b[0m" : "");
    line += printable(message, message.size());
  }
  line += '\n';
  if (config_.writer != nullptr) return config_.writer->write(line);
  const std::scoped_lock lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), config_.stream);
  std::fflush(config_.stream);
}

}  // namespace kvasir
