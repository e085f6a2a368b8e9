#include "base/memory_reserve.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "base/reserved_work.h"

namespace kvasir {
namespace {

constexpr std::chrono::milliseconds kPause{10};

// operator new knows a function only.
std::atomic<MemoryReserve*> current_reserve{nullptr};
thread_local int num_sparing = 0;

void take_from_reserve() {
  MemoryReserve* const reserve = current_reserve;
  if (num_sparing > 0 || reserve == nullptr || !reserve->make_room()) throw std::bad_alloc();
}

}  // namespace

MemoryReserve::MemoryReserve(std::chrono::milliseconds patience) : patience_(patience) {
  refill();
  current_reserve = this;
  std::set_new_handler(take_from_reserve);
}

MemoryReserve::~MemoryReserve() {
  std::set_new_handler(nullptr);
  current_reserve = nullptr;
  while (release_piece()) continue;
}

void MemoryReserve::refill() {
  for (std::atomic<void*>& piece : pieces_) {
    if (piece != nullptr) continue;
    void* const taken = ::mmap(nullptr, kPieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (taken == MAP_FAILED) return;
    piece = taken;
  }
}

bool MemoryReserve::is_full() const {
  return std::ranges::all_of(pieces_, [](const std::atomic<void*>& piece) { return piece != nullptr; });
}

bool MemoryReserve::make_room() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point began, last;
  if (release_piece()) return true;
  const auto now = Clock::now();
  if (now - last > 10 * kPause) began = now;  // of this allocation
  if (now - began >= patience_) return false;
  std::this_thread::sleep_for(kPause);
  last = Clock::now();
  return true;
}

bool MemoryReserve::release_piece() {
  for (std::atomic<void*>& piece : pieces_) {
    if (void* const taken = piece.exchange(nullptr)) return ::munmap(taken, kPieceBytes) == 0;
  }
  return false;
}

MemoryReserve::Spared::Spared() { ++num_sparing; }
MemoryReserve::Spared::~Spared() { --num_sparing; }

ReservedWork::ReservedWork() : num_sparing_(std::exchange(num_sparing, 0)) {}
ReservedWork::~ReservedWork() { num_sparing = num_sparing_; }

}  // namespace kvasir
