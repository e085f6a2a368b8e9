// Copies of the host's arrays that a model keeps for as long as it lives: norms, biases, sinks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "backend/gpu/gpu_device.h"

namespace kvasir::backend {

// Borrows the device. An array is copied once; whoever gives it keeps it, unchanged. Thread safety: none.
class DeviceCopies {
 public:
  explicit DeviceCopies(GpuDevice& device) : device_(device) {}
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;
  ~DeviceCopies() {
    for (const auto& [array, copy] : copies_) device_.free(copy);
  }

  // Null for an empty array.
  const float* of(std::span<const float> array) {
    if (array.empty()) return nullptr;
    const auto [it, is_new] = copies_.try_emplace({array.data(), array.size()});
    if (is_new) it->second = reinterpret_cast<const float*>(device_.allocate_constant(std::as_bytes(array)));
    if (it->second == nullptr) device_.fail("the device has no room for a norm or a bias");
    return it->second;
  }
  const float* of(const float* array, std::int64_t count) {
    return array == nullptr ? nullptr : of({array, static_cast<std::size_t>(count)});
  }

 private:
  GpuDevice& device_;
  std::map<std::pair<const float*, std::size_t>, const float*> copies_;
};

}  // namespace kvasir::backend
