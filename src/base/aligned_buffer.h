// Zeroed memory for tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kvasir/result.h"

namespace kvasir {

// For what is touched here and there huge pages would cost memory for all of it.
enum class PageSize { kHuge, kSmall };

// Owns bytes that start at a multiple of 64 and are zero at first. From 2 MiB on they are mapped at a
// multiple of 2 MiB, marked for huge pages (but for the part of one at the end) or against them, and cost physical
// memory only where touched.
//
// Thread safety: as a plain array.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  // Error (kMachine) when the memory cannot be had, (kInternal) when num_bytes is negative.
  static Result<AlignedBuffer> allocate(std::int64_t num_bytes, PageSize pages = PageSize::kHuge);
  // Bytes that somebody else owns and frees, after this. Requires: they start at a multiple of 64.
  static AlignedBuffer borrow(std::span<std::byte> bytes);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() { return {data_, static_cast<std::size_t>(size_bytes_)}; }

  // Gives bytes [begin, end) physical memory before they are touched, where the system can (Linux 5.14), so
  // that a later write does not wait for it. Contents stay. Borrowed bytes are left as they are. Requires: within the
  // buffer.
  void populate(std::int64_t begin, std::int64_t end);

  // The whole buffer as an array of T; a remainder smaller than T is left out.
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(size_bytes_) / sizeof(T)};
  }

 private:
  AlignedBuffer(std::byte* data, std::int64_t size_bytes, std::size_t mapped_bytes)
      : data_(data), size_bytes_(size_bytes), mapped_bytes_(mapped_bytes) {}

  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;  // 0: from the heap, or borrowed
  bool is_borrowed_ = false;
};

}  // namespace kvasir
