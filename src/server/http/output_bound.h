// How much may wait for a reader who is slower than what is made for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kvasir::server::http {

// Beside the largest piece that waits, which may be of any size: it was planned in the request memory, and
// however fast a reader is, the next may be made before that has left.
//
// Thread safety: none.
class OutputBound {
 public:
  explicit OutputBound(std::int64_t max_bytes) : max_bytes_(static_cast<std::size_t>(max_bytes)) {}

  // Whether a piece may wait behind what does.
  bool takes(std::size_t waiting_bytes, std::size_t piece_bytes) {
    largest_bytes_ = std::max(waiting_bytes == 0 ? 0 : largest_bytes_, piece_bytes);
    return waiting_bytes + piece_bytes <= max_bytes_ + largest_bytes_;
  }

 private:
  const std::size_t max_bytes_;
  std::size_t largest_bytes_ = 0;  // of those since nothing waited
};

}  // namespace kvasir::server::http
