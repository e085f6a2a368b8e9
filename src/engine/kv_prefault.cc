#include "engine/kv_prefault.h"

#include <algorithm>

namespace kvasir {
namespace {

constexpr std::int64_t kLeastPart = 16;  // of all of it, where that is less than kMostBytes

}  // namespace

std::int64_t KvPrefault::wanted_bytes() const {
  const std::int64_t all_bytes = memory_.size_bytes();
  return std::min(all_bytes, arena_.touched_bytes() + std::min(kMostBytes, all_bytes / kLeastPart));
}

void KvPrefault::advance() {
  const std::int64_t begin = std::max(ready_bytes_, arena_.touched_bytes());
  ready_bytes_ = std::min(begin + kPieceBytes, memory_.size_bytes());
  memory_.populate(begin, ready_bytes_);
}

}  // namespace kvasir
