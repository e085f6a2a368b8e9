// The part of a server's memory budget that its clients' data have.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked_math.h"
#include "server/limits.h"
#include "server/request_memory.h"

namespace kvasir::cli {

// The bytes of one body of the greatest size, as it is read.
inline std::int64_t largest_body_bytes(const server::Limits& limits) {
  return limits.body_bytes.max * (server::kBytesPerTextByte + 1);
}

inline std::int64_t least_request_memory_bytes(const server::Limits& limits, bool has_grpc) {
  const std::int64_t bytes = largest_body_bytes(limits) + (std::int64_t{8} << 20);  // and what else is
  return has_grpc ? bytes + ceil_div(bytes, std::int64_t{3}) : bytes;               // of which it takes a quarter
}

// Memory of stored things: all of them without a folder, SQLite's pages with one.
inline std::int64_t stored_memory_bytes(std::int64_t request_memory_bytes) {
  constexpr std::int64_t kMost = 64 << 20;
  return std::min(kMost, request_memory_bytes / 16);
}

}  // namespace kvasir::cli
