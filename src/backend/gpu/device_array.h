// An array of the device that grows: indices, angles, scratch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "backend/gpu/gpu_device.h"

namespace kvasir::backend {

// Borrows the device. Thread safety: none.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(GpuDevice& device) : device_(&device) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { device_->free(data_); }

  // Room for so many; what was there is lost when it grows. Where there is none the device fails.
  T* resize(std::int64_t count) {
    if (count <= capacity_) return data_;
    device_->free(data_);
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
    capacity_ = std::max(count, std::min(2 * capacity_, count + kMostSpare));
    data_ = reinterpret_cast<T*>(device_->allocate(capacity_ * kBytes));
    if (data_ == nullptr) {  // then without any to spare
      capacity_ = count;
      data_ = reinterpret_cast<T*>(device_->allocate(count * kBytes));
    }
    if (data_ == nullptr) device_->fail("the device has no room for " + std::to_string(count * kBytes) + " bytes of a step");
    return data_;
  }
  // These elements from the first on.
  T* assign(std::span<const T> elements) {
    T* const data = resize(std::ssize(elements));
    device_->copy_in(std::as_bytes(elements), data);
    return data;
  }
  T* data() const { return data_; }

 private:
  static constexpr std::int64_t kMostSpare = 1 << 18;

  GpuDevice* device_;
  T* data_ = nullptr;
  std::int64_t capacity_ = 0;
};

}  // namespace kvasir::backend
