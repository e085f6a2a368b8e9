// Memory that is set aside for the threads that must not fail.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

namespace kvasir {

// Where a process may have only so much (ulimit -v) an allocation can fail in any thread. While a reserve is there, a
// failed `new` gives a piece of it back to the system and tries again, so that the engine, the log and the store go on.
// Threads of connections take nothing: what fails there ends one connection.
//
// Thread safety: one at a time in a process; refill() and is_full() from one thread.
class MemoryReserve {
 public:
  static constexpr std::size_t kPieceBytes = 512 << 10, kNumPieces = 16;

  MemoryReserve();
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // Takes what is missing, as far as there is any.
  void refill();
  bool is_full() const;
  // Gives a piece back; false: there is none. Any thread.
  bool release_piece();

  // The calling thread takes nothing while this lives.
  class Spared {
   public:
    Spared();
    ~Spared();
    Spared(const Spared&) = delete;
    Spared& operator=(const Spared&) = delete;
  };

 private:
  std::array<std::atomic<void*>, kNumPieces> pieces_{};  // not touched: they take addresses, no memory
};

}  // namespace kvasir
