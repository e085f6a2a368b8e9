// Counts how deep a recursion is.
#pragma once

#include <cstddef>

namespace kvasir::jinja {

// One level deeper while it lives.
class DepthGuard {
 public:
  explicit DepthGuard(std::size_t& depth) : depth_(depth) { ++depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { --depth_; }

 private:
  std::size_t& depth_;
};

}  // namespace kvasir::jinja
