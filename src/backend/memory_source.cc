#include "backend/memory_source.h"

namespace kvasir::backend {
namespace {

class HostMemory final : public MemorySource {
 public:
  Result<AlignedBuffer> allocate(std::int64_t num_bytes) override { return AlignedBuffer::allocate(num_bytes); }
};

}  // namespace

MemorySource& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace kvasir::backend
