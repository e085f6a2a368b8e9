// The requests that are sent to a server, and their times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::load {

// A completion of exactly max_tokens tokens behind a prompt of token ids.
struct PlannedRequest {
  double at_ms = 0.0;  // after the start; not used by users, who send when their last answer has ended
  std::string prompt;  // a JSON array of token ids, as the file has it
  std::int32_t max_tokens = 0;  // the answer's length
  std::string api_key;          // empty: none
};

// Reads a file of lines {"at_ms": 0.0, "prompt": [1, 2], "max_tokens": 100, "api_key": "..."}; at_ms and
// api_key may be left out. Error (kBadFile) naming the line.
Result<std::vector<PlannedRequest>> read_workload(const std::string& path);

}  // namespace kvasir::load
