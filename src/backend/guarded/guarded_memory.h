// Memory that only its owner's ops can touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "backend/memory_source.h"
#include "kvasir/result.h"

namespace kvasir::backend {

// One range of addresses, of which allocations take the next part. Nobody may read or write them while it is closed:
// whoever does gets SIGSEGV, as for the memory of a device. Memory comes back with the range alone.
//
// Thread safety: open() waits for another thread's close(). allocate() is by the thread that has opened it, or by one
// while no other uses it.
class GuardedMemory final : public MemorySource {
 public:
  // Error (kMachine) where so many addresses cannot be had.
  static Result<std::unique_ptr<GuardedMemory>> reserve(std::int64_t num_bytes);
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() override;

  Result<AlignedBuffer> allocate(std::int64_t num_bytes) override;
  void open();
  void close();

 private:
  GuardedMemory(std::byte* begin, std::int64_t reserved_bytes) : begin_(begin), reserved_bytes_(reserved_bytes) {}
  void protect(bool is_open);

  std::byte* const begin_;
  const std::int64_t reserved_bytes_;
  std::int64_t used_bytes_ = 0;
  bool is_open_ = false;
  std::mutex opened_;  // held from open() to close()
};

}  // namespace kvasir::backend
