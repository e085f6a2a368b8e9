#include "base/process_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <new>
#include <thread>

#include "base/testing/address_limit.h"

namespace kvasir {
namespace {

// How many of 10,000 small pieces a thread gets that was there before the addresses were used up.
int num_pieces_without_addresses() {
  std::latch begun(1), limited(1);
  int num_pieces = 0;
  std::thread thread([&] {
    claim_arena();
    begun.count_down();
    limited.wait();
    static thread_local std::array<void*, 10000> pieces;
    for (void*& piece : pieces) num_pieces += (piece = ::operator new(100, std::nothrow)) != nullptr;
    for (void* const piece : pieces) ::operator delete(piece);
  });
  begun.wait();
  {
    const AddressLimit limit(0);
    limited.count_down();
    thread.join();
  }
  return num_pieces;
}

TEST(ProcessMemory, AThreadWithAnArenaNeedsNoAddresses) {
  EXPECT_EQ(num_pieces_without_addresses(), 10000);
}

}  // namespace
}  // namespace kvasir
