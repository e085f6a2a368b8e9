#include "server/request_memory.h"

#include <algorithm>

namespace kvasir::server {

std::int64_t body_memory_bytes(std::string_view body) {
  constexpr std::int64_t kBytesPerItem = 24;  // simdjson's tape and index of a number and its comma
  return kBytesPerTextByte * std::ssize(body) + kBytesPerItem * std::ranges::count(body, ',');
}

bool RequestMemory::Share::resize(std::int64_t bytes) {
  const std::int64_t growth = bytes - bytes_;
  std::int64_t used = memory_->used_bytes_;
  do {
    if (growth > 0 && memory_->limit_bytes_ > 0 && used + growth > memory_->limit_bytes_) return false;
  } while (!memory_->used_bytes_.compare_exchange_weak(used, used + growth));
  bytes_ = bytes;
  return true;
}

void RequestMemory::Share::set(std::int64_t bytes) {
  memory_->used_bytes_ += bytes - bytes_;
  bytes_ = bytes;
}

}  // namespace kvasir::server
