#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace kvasir::aligned_buffer_test {
namespace {

TEST(AlignedBuffer, IsAlignedZeroedAndWritableAtEverySize) {
  const std::int64_t huge = 2 << 20;
  for (const std::int64_t size :
       {std::int64_t{1}, std::int64_t{63}, std::int64_t{4097}, huge - 1, huge, huge + 1, 3 * huge + 5}) {
    auto buffer = AlignedBuffer::allocate(size);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer->size_bytes(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % AlignedBuffer::kAlignment, 0u);
    EXPECT_TRUE(std::ranges::all_of(buffer->bytes(), [](std::byte b) { return b == std::byte{0}; }));
    std::ranges::fill(buffer->bytes(), std::byte{0xff});
    EXPECT_EQ(buffer->as<float>().size(), static_cast<std::size_t>(size) / 4);
  }
}

TEST(AlignedBuffer, HoldsNothingForZeroBytes) {
  auto buffer = AlignedBuffer::allocate(0);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size_bytes(), 0);
  EXPECT_TRUE(buffer->bytes().empty());
}

TEST(AlignedBuffer, MovesItsBytes) {
  auto first = AlignedBuffer::allocate(100).value();
  std::byte* const data = first.data();
  AlignedBuffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
  AlignedBuffer third = AlignedBuffer::allocate(5 << 20).value();
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size_bytes(), 100);
}

TEST(AlignedBuffer, RefusesImpossibleSizesWithoutCrashing) {
  EXPECT_EQ(AlignedBuffer::allocate(INT64_MAX).error().kind, ErrorKind::kMachine);
  EXPECT_EQ(AlignedBuffer::allocate(INT64_MAX / 2).error().message, "cannot allocate 4.00 EiB of memory");
  EXPECT_FALSE(AlignedBuffer::allocate(-1));
}

}  // namespace
}  // namespace kvasir::aligned_buffer_test
