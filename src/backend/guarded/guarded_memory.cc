#include "backend/guarded/guarded_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/units.h"

namespace kvasir::backend {
namespace {

// Allocations begin with a page of their own, at most one more than they need.
constexpr std::int64_t kPageBytes = 4096;

}  // namespace

Result<std::unique_ptr<GuardedMemory>> GuardedMemory::reserve(std::int64_t num_bytes) {
  const auto size = static_cast<std::size_t>(num_bytes);
  void* const begin = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("device guarded: cannot reserve {} of addresses", format_bytes(num_bytes)));
  }
  // Only a hint. Fewer pages are protected faster.
  madvise(begin, size, MADV_HUGEPAGE);
  return std::unique_ptr<GuardedMemory>(new GuardedMemory(static_cast<std::byte*>(begin), num_bytes));
}

GuardedMemory::~GuardedMemory() { munmap(begin_, static_cast<std::size_t>(reserved_bytes_)); }

Result<AlignedBuffer> GuardedMemory::allocate(std::int64_t num_bytes) {
  if (num_bytes == 0) return AlignedBuffer();
  const std::int64_t taken_bytes = (ceil_div(num_bytes, kPageBytes) + 1) * kPageBytes;
  if (taken_bytes > reserved_bytes_ - used_bytes_) {
    return make_error(ErrorKind::kMachine, fmt::format("device guarded: {} of {} are left, {} are needed",
                                                       format_bytes(reserved_bytes_ - used_bytes_),
                                                       format_bytes(reserved_bytes_), format_bytes(num_bytes)));
  }
  std::byte* const data = begin_ + used_bytes_;
  used_bytes_ += taken_bytes;
  if (is_open_) protect(true);
  return AlignedBuffer::borrow({data, static_cast<std::size_t>(num_bytes)});
}

void GuardedMemory::open() {
  opened_.lock();
  is_open_ = true;
  protect(true);
}

void GuardedMemory::close() {
  protect(false);
  is_open_ = false;
  opened_.unlock();
}

void GuardedMemory::protect(bool is_open) {
  if (used_bytes_ == 0) return;
  const int access = is_open ? PROT_READ | PROT_WRITE : PROT_NONE;
  CHECK(mprotect(begin_, static_cast<std::size_t>(used_bytes_), access) == 0);
}

}  // namespace kvasir::backend
