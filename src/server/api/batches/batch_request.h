// POST /v1/batches: what the body says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/api/field.h"

namespace kvasir::server::api {

struct BatchRequest {
  std::string input_file_id;
  std::string endpoint;
  std::string completion_window;
  std::int64_t window_s = 0;
  std::string metadata_json = "null";
};

std::span<const Field<BatchRequest>> batch_fields();

// Errors (400).
ApiResult<BatchRequest> parse_batch_request(std::string_view body, const Limits& limits, Warnings& warnings);

}  // namespace kvasir::server::api
