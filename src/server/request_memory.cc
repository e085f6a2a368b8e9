#include "server/request_memory.h"

namespace kvasir::server {

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
