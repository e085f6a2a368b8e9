// Work that must not fail for want of memory, amid work that may.
#pragma once

namespace kvasir {

// While this lives the calling thread takes from the memory reserve again, though it is within a
// MemoryReserve::Spared. For functions of Asio: some of them end the program where they find no memory.
class ReservedWork {
 public:
  ReservedWork();
  ~ReservedWork();
  ReservedWork(const ReservedWork&) = delete;
  ReservedWork& operator=(const ReservedWork&) = delete;

 private:
  const int num_sparing_;  // of the thread, as it was
};

}  // namespace kvasir
