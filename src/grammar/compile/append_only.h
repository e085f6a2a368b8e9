// A sequence that grows while others read it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kvasir::grammar {

// Elements never move. They begin as value-initialised.
//
// Thread safety: one thread at a time may grow(); any thread may read an element whose index it got from that thread
// by a synchronised way.
template <typename T>
class AppendOnly {
 public:
  AppendOnly() = default;
  AppendOnly(const AppendOnly&) = delete;
  AppendOnly& operator=(const AppendOnly&) = delete;
  ~AppendOnly() {
    for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
  }

  std::uint32_t size() const { return size_; }
  T& operator[](std::uint32_t index) const {
    const Position at = position(index);
    return chunks_[at.chunk].load(std::memory_order_acquire)[at.offset];
  }
  // Adds one element; its index.
  std::uint32_t grow() {
    const Position at = position(size_);
    if (at.offset == 0) chunks_[at.chunk].store(new T[kFirstChunk << at.chunk]{}, std::memory_order_release);
    return size_++;
  }

 private:
  static constexpr std::size_t kFirstChunk = 32;  // each chunk has twice as many as the one before
  struct Position {
    std::size_t chunk = 0;
    std::size_t offset = 0;
  };
  static Position position(std::uint32_t index) {
    const std::size_t above = index / kFirstChunk + 1;
    const auto chunk = static_cast<std::size_t>(std::bit_width(above)) - 1;
    return {chunk, index - kFirstChunk * ((std::size_t{1} << chunk) - 1)};
  }

  std::array<std::atomic<T*>, 28> chunks_ = {};
  std::uint32_t size_ = 0;
};

}  // namespace kvasir::grammar
