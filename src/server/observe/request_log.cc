#include "server/observe/request_log.h"

#include <fmt/format.h>

#include <iterator>

#include "base/printable.h"

namespace kvasir::server::observe {
namespace {

std::string duration(double ms) {
  return ms < 1000.0 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} s", ms / 1000.0);
}

}  // namespace

std::string request_line(const AccessRecord& record) {
  const bool is_refused_for_load = record.status == 429 || record.status == 503;
  if (is_refused_for_load || (record.method == "GET" && record.status < 400)) return {};
  std::string line = fmt::format("{} {} ", record.method, printable_line(record.path));
  line += record.status == 0 ? "no answer" : std::to_string(record.status);
  const auto out = std::back_inserter(line);
  if (const auto& generation = record.generation) {
    const Usage& usage = generation->usage;
    fmt::format_to(out, "  {}  {} tokens", printable_line(generation->model), usage.prompt_tokens);
    if (usage.cached_tokens > 0) fmt::format_to(out, " ({} cached)", usage.cached_tokens);
    fmt::format_to(out, " + {}", usage.completion_tokens);
    if (generation->first_token_ms > 0.0) fmt::format_to(out, ", first after {}", duration(generation->first_token_ms));
  }
  fmt::format_to(out, ", {}", duration(record.total_ms));
  if (!record.tenant.empty()) fmt::format_to(out, ", key {}", printable_line(record.tenant));
  if (!record.abort_cause.empty()) fmt::format_to(out, ", {}", record.abort_cause);
  if (record.stream_failed) line += ", failed";
  return line;
}

void RequestLog::note(const AccessRecord& record) const {
  if (!write_) return;
  if (const std::string line = request_line(record); !line.empty()) write_(line);
}

}  // namespace kvasir::server::observe
