// The access log: a line of JSON for each request, its kind and its cost, never its text.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/line_writer.h"
#include "kvasir/request.h"
#include "kvasir/result.h"
#include "server/observe/tracing/request_trace.h"

namespace kvasir::server::observe {

// How an answer was asked for.
struct GenerationSettings {
  bool is_stream = false;
  bool is_guided = false;
  std::int32_t num_choices = 1;  // of each prompt
  std::optional<std::int32_t> max_tokens;
  float temperature = 1.0f;
  float top_p = 1.0f;
};

// The engine's share of an answer: tokens, times and costs.
struct GenerationRecord {
  std::string id;     // of the answer, as its client knows it
  std::string model;  // that answered, by its name here
  GenerationSettings settings;
  std::vector<FinishReason> finish_reasons;  // of the choices that ended
  Usage usage;
  RequestCost cost;
  double preprocess_ms = 0.0;   // from its arrival until the engine had it
  double first_token_ms = 0.0;  // from its arrival; 0: it had none
  std::int32_t priority = 0;
};

inline constexpr std::string_view kNoRoute = "other";

struct AccessRecord {
  std::string request_id;
  std::string client_request_id;  // empty: none came
  std::string trace_id;           // empty: none came, and none was begun
  std::string tenant;
  std::string method;
  std::string path;
  std::string route;
  std::string_view api;          // whose it is, as "openai"; empty: no route's
  int status = 0;                // 0: none was sent
  std::string_view abort_cause;  // empty: the answer reached the client
  bool stream_failed = false;    // it broke off after its head had been sent
  double total_ms = 0.0;         // from the request's arrival until the last byte had left
  double flush_ms = 0.0;         // of it, after the last byte was ready
  std::optional<GenerationRecord> generation;
  std::optional<RequestTrace> trace;  // where the request is traced

  bool has_route() const { return route != kNoRoute; }
};

// Thread safety: any thread.
class AccessLog {
 public:
  using Warn = std::function<void(std::string_view line)>;

  // Appends to the file; "-" is stderr. Error: kMachine.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& path, Warn warn);
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // Never waits. A line that is not taken is lost and counted; it warns of the first such line, and when lines
  // are written again.
  void write(const AccessRecord& record);
  std::int64_t num_dropped() const { return writer_->num_dropped(); }

 private:
  explicit AccessLog(std::unique_ptr<LineWriter> writer) : writer_(std::move(writer)) {}

  const std::unique_ptr<LineWriter> writer_;
};

}  // namespace kvasir::server::observe
