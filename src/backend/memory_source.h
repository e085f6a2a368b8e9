// Where a backend takes its memory from.
#pragma once

#include <cstdint>

#include "base/aligned_buffer.h"
#include "kvasir/result.h"

namespace kvasir::backend {

// Weights, activations and KV cells of one backend. Thread safety: none.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Zeroed. It must not outlive the source. Error: kMachine when there is none left.
  virtual Result<AlignedBuffer> allocate(std::int64_t num_bytes) = 0;
};

// The process's own memory, which needs no source to outlive it.
MemorySource& host_memory();

}  // namespace kvasir::backend
