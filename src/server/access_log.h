// What every request was and took, a line of JSON each; never what it said.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir::server {

// What an answer took beyond HTTP.
struct GenerationRecord {
  Usage usage;
  RequestCost cost;
  double preprocess_ms = 0.0;   // from its arrival until the engine had it
  double first_token_ms = 0.0;  // from its arrival; 0: it had none
  std::int32_t priority = 0;
};

struct AccessRecord {
  std::string request_id;
  std::string client_request_id;  // empty: none came
  std::string trace_id;           // of a W3C traceparent; empty: none came
  std::string tenant;
  std::string method;
  std::string path;
  std::string route;
  int status = 0;                // 0: none was sent
  std::string_view abort_cause;  // empty: the answer reached the client
  double total_ms = 0.0;         // from the request's arrival until the last byte had left
  double flush_ms = 0.0;         // of it, after the last byte was ready
  std::optional<GenerationRecord> generation;
};

// The 32 digits of a valid `traceparent` header; empty for any other. Source: W3C Trace Context, 3.2.
std::string trace_id_of(std::string_view traceparent);

// Thread safety: any thread.
class AccessLog {
 public:
  using Warn = std::function<void(std::string_view line)>;

  // Appends to the file; "-" is stderr. Error: kMachine.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& path, Warn warn);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // A line that cannot be written is lost; requests go on. Of the first and of the end of that it warns.
  void write(const AccessRecord& record);

 private:
  AccessLog(std::FILE* file, std::string path, Warn warn)
      : file_(file), path_(std::move(path)), warn_(std::move(warn)) {}

  std::FILE* const file_;
  const std::string path_;
  const Warn warn_;
  std::mutex mutex_;  // guards the file, and
  bool is_failing_ = false;
};

}  // namespace kvasir::server
