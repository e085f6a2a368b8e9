// A batch: what its client sees, and what a restart needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/auth/tenant.h"
#include "server/limits.h"
#include "server/stored/object_store.h"

namespace kvasir::server::api {

struct BatchError {
  std::string code;
  std::string message;
  std::int64_t line = 0;  // of the input file, from 1; 0: of none
};

struct Batch {
  std::string id;
  std::string endpoint;  // "/v1/chat/completions"
  std::string input_file_id;
  std::string completion_window;  // as it came
  std::string status = "validating";
  std::string metadata_json = "null";
  std::map<std::string, std::int64_t> times;  // "created_at" and others, Unix time
  std::int64_t num_total = 0, num_completed = 0, num_failed = 0;
  bool has_output = false, has_errors = false;  // such a file is there
  std::vector<BatchError> errors;
  auth::Tenant tenant;

  std::int64_t expires_s() const { return times.at("expires_at"); }
  // They follow from the batch's id, so that a restart finds what was written.
  std::string output_file_id() const { return "file-output-" + id; }
  std::string error_file_id() const { return "file-errors-" + id; }
};

std::string batch_json(const Batch& batch);
// With its tenant in `parent`.
stored::Object batch_object(const Batch& batch, bool is_pinned);
// Reads what batch_object() made.
ApiResult<Batch> batch_of(const stored::Object& object, const Limits& limits);

}  // namespace kvasir::server::api
