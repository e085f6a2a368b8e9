// Memory that is set aside for the threads that must not fail.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

namespace kvasir {

// Where a process may have only so much (ulimit -v) an allocation can fail in any thread. While a reserve is there, a
// failed `new` gives a piece of it back to the system and tries again, so that the engine, the log and the store go on.
// Another thread may be faster to take that piece; when all are gone it waits for what others give back, `patience` at
// most. A connection's own work takes nothing (Spared): what fails there ends that connection.
//
// Thread safety: one at a time in a process; refill() and is_full() from one thread.
class MemoryReserve {
 public:
  static constexpr std::size_t kPieceBytes = 512 << 10, kNumPieces = 16;

  explicit MemoryReserve(std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // Takes what is missing, as far as there is any.
  void refill();
  bool is_full() const;
  // For the thread whose allocation failed: gives a piece back, or waits. False: it has waited long enough.
  bool make_room();

  // The calling thread takes nothing while this lives.
  class Spared {
   public:
    Spared();
    ~Spared();
    Spared(const Spared&) = delete;
    Spared& operator=(const Spared&) = delete;
  };

 private:
  bool release_piece();

  const std::chrono::milliseconds patience_;
  std::array<std::atomic<void*>, kNumPieces> pieces_{};  // not touched: they take addresses, no memory
};

}  // namespace kvasir
