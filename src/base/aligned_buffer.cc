#include "base/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace kvasir {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Maps num_bytes (a multiple of the huge page) at a multiple of the huge page; null when it cannot. Only whole huge
// pages among the first used_bytes are huge: the last one would cost memory for what nobody touches.
std::byte* map_pages(std::size_t num_bytes, std::size_t used_bytes, PageSize pages) {
  const std::size_t reserved_bytes = num_bytes + kHugePageBytes;
  void* const reserved =
      mmap(nullptr, reserved_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(reserved);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t head_bytes = round_up(address, kHugePageBytes) - address;
  const std::size_t tail_bytes = kHugePageBytes - head_bytes;
  if (head_bytes > 0) munmap(begin, head_bytes);
  if (tail_bytes > 0) munmap(begin + head_bytes + num_bytes, tail_bytes);
  // Only a hint: without it everything still works.
  std::byte* const data = begin + head_bytes;
  const std::size_t huge_bytes = pages == PageSize::kHuge ? used_bytes / kHugePageBytes * kHugePageBytes : 0;
  if (huge_bytes > 0) madvise(data, huge_bytes, MADV_HUGEPAGE);
  if (huge_bytes < num_bytes) madvise(data + huge_bytes, num_bytes - huge_bytes, MADV_NOHUGEPAGE);
  return data;
}

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(std::int64_t num_bytes, PageSize pages) {
  if (num_bytes < 0)
    return make_error(ErrorKind::kInternal, fmt::format("cannot allocate {} bytes", num_bytes));
  if (num_bytes == 0) return AlignedBuffer();
  const auto size = static_cast<std::size_t>(num_bytes);
  const bool is_mapped = size >= kHugePageBytes;
  const bool fits = size <= std::numeric_limits<std::ptrdiff_t>::max() - 2 * kHugePageBytes;
  const std::size_t rounded = fits ? round_up(size, is_mapped ? kHugePageBytes : kAlignment) : 0;
  std::byte* data = nullptr;
  if (fits)
    data = is_mapped ? map_pages(rounded, size, pages)
                     : static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (data == nullptr) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("cannot allocate {} of memory", format_bytes(num_bytes)));
  }
  if (!is_mapped) std::memset(data, 0, rounded);
  return AlignedBuffer(data, num_bytes, is_mapped ? rounded : 0);
}

AlignedBuffer AlignedBuffer::borrow(std::span<std::byte> bytes) {
  CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0);
  AlignedBuffer buffer(bytes.data(), std::ssize(bytes), 0);
  buffer.is_borrowed_ = true;
  return buffer;
}

void AlignedBuffer::populate(std::int64_t begin, std::int64_t end) {
#ifdef MADV_POPULATE_WRITE
  if (mapped_bytes_ == 0 || begin >= end) return;
  const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const std::int64_t first = begin / page_bytes * page_bytes;
  madvise(data_ + first, static_cast<std::size_t>(end - first), MADV_POPULATE_WRITE);
#endif
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)),
      is_borrowed_(std::exchange(other.is_borrowed_, false)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(is_borrowed_, other.is_borrowed_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (mapped_bytes_ > 0) {
    munmap(data_, mapped_bytes_);
  } else if (!is_borrowed_) {
    std::free(data_);
  }
}

}  // namespace kvasir
