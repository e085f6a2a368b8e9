#include "server/observe/access_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/printable.h"
#include "server/observe/kv_usage_json.h"

namespace kvasir::server::observe {
namespace {

std::string now_utc() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), (now - seconds).count());
}

void member_unless_empty(JsonWriter& json, std::string_view name, std::string_view text) {
  if (!text.empty()) json.member(name, text);
}

// To a microsecond: more digits would only be noise.
double rounded(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value * 1000.0)) / 1000.0;
}

void write_generation(JsonWriter& json, const GenerationRecord& record) {
  const RequestCost& cost = record.cost;
  json.member("model", record.model).member("prompt_tokens", record.usage.prompt_tokens)
      .member("cached_tokens", record.usage.cached_tokens);
  json.member("completion_tokens", record.usage.completion_tokens);
  if (record.settings.is_guided) json.member("guided", true).member("forced_tokens", record.usage.forced_tokens);
  if (record.usage.draft_tokens > 0) {
    json.member("draft_tokens", record.usage.draft_tokens);
    json.member("draft_tokens_accepted", record.usage.draft_tokens_accepted);
  }
  json.member("preprocess_ms", rounded(record.preprocess_ms)).member("queue_ms", rounded(cost.queue_ms));
  json.member("prefill_ms", rounded(cost.prefill_ms)).member("decode_ms", rounded(cost.decode_ms));
  json.member("cpu_ms", rounded(cost.cpu_ms)).member("kv_byte_seconds", rounded(cost.kv_byte_seconds));
  json.member("preemptions", cost.num_preemptions);
  member_kv_usage(json, record.usage.kv);
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path, Warn warn) {
  const std::string name = printable_line(path);
  auto on_trouble = [name, warn = std::move(warn)](std::string_view what) {
    warn(fmt::format("access log {}: {}", name, what));
  };
  if (path == "-") {
    return std::unique_ptr<AccessLog>(
        new AccessLog(LineWriter::of_descriptor(STDERR_FILENO, std::move(on_trouble))));
  }
  auto writer = LineWriter::open(path, std::move(on_trouble));
  if (!writer) {
    return make_error(ErrorKind::kMachine, fmt::format("{}: {}", name, writer.error().message), "access-log");
  }
  return std::unique_ptr<AccessLog>(new AccessLog(*std::move(writer)));
}

void AccessLog::write(const AccessRecord& record) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("time", now_utc()).member("request_id", record.request_id);
  member_unless_empty(json, "client_request_id", record.client_request_id);
  member_unless_empty(json, "trace_id", record.trace_id);
  member_unless_empty(json, "tenant", record.tenant);
  json.member("method", record.method).member("path", record.path).member("status", record.status);
  member_unless_empty(json, "api", record.api);
  member_unless_empty(json, "aborted", record.abort_cause);
  if (record.stream_failed) json.member("failed", true);
  json.member("total_ms", rounded(record.total_ms)).member("flush_ms", rounded(record.flush_ms));
  if (record.generation) write_generation(json, *record.generation);
  json.end_object();
  line += '\n';
  writer_->write(line);
}

}  // namespace kvasir::server::observe
