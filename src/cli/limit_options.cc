#include "cli/limit_options.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "cli/number_range.h"

namespace kvasir::cli {
namespace {

constexpr std::int64_t kMostSeconds = 86400;

std::string meaning_of(const server::Limit& limit) {
  return limit.status == 0 ? fmt::format("Most {}; beyond it the connection closes", limit.what)
                           : fmt::format("Most {}; more is refused with {}", limit.what, limit.status);
}

}  // namespace

void add_limit_options(CLI::App& verb, LimitOptions& options) {
  for (const auto member : server::kLimits) {
    server::Limit& limit = options.limits.*member;
    verb.add_option("--" + std::string(limit.flag), limit.max, meaning_of(limit))
        ->transform(whole_number(std::int64_t{1}, limit.most))
        ->capture_default_str();
  }
  verb.add_flag("--strict-limits", options.limits.are_strict,
                "Refuse an answer whose max_tokens go beyond the context with 400, rather than cut it");
  for (std::size_t i = 0; i < server::kTimeLimits.size(); ++i) {
    const server::TimeLimit& limit = server::kTimeLimits[i];
    options.seconds[i] = std::chrono::duration_cast<std::chrono::seconds>(options.limits.*limit.time).count();
    verb.add_option("--" + std::string(limit.flag), options.seconds[i],
                    fmt::format("Seconds {}; else {}", limit.what, limit.answer))
        ->transform(whole_number(std::int64_t{1}, kMostSeconds))
        ->capture_default_str();
  }
}

Result<server::Limits> chosen_limits(const LimitOptions& options) {
  server::Limits limits = options.limits;
  for (std::size_t i = 0; i < server::kTimeLimits.size(); ++i) {
    limits.*server::kTimeLimits[i].time = std::chrono::seconds(options.seconds[i]);
  }
  // The request line is read as a part of the head.
  if (limits.request_line_bytes.max > limits.header_bytes.max) {
    return make_error(
        ErrorKind::kUsage,
        fmt::format("--{} must be at most --{}, {}, got {}", limits.request_line_bytes.flag,
                    limits.header_bytes.flag, limits.header_bytes.max, limits.request_line_bytes.max),
        "limits");
  }
  return limits;
}

}  // namespace kvasir::cli
