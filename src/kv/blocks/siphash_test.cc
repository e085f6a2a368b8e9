#include "kv/blocks/siphash.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::kv::siphash_test {
namespace {

// The message and key of the reference vectors: bytes 0, 1, 2, ...
std::uint64_t reference_digest(std::size_t num_bytes) {
  std::vector<std::byte> message(num_bytes);
  for (std::size_t i = 0; i < num_bytes; ++i) message[i] = static_cast<std::byte>(i);
  return SipHash({0x0706050403020100u, 0x0f0e0d0c0b0a0908u}).digest(message);
}

TEST(SipHash, GivesThePublishedVectors) {
  EXPECT_EQ(reference_digest(0), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(reference_digest(1), 0x74f839c593dc67fdu);
  EXPECT_EQ(reference_digest(8), 0x93f5f5799a932462u);
  EXPECT_EQ(reference_digest(15), 0xa129ca6149be45e5u);  // appendix A of the paper
}

TEST(SipHash, DependsOnTheKey) {
  const std::vector<std::byte> message(72);
  EXPECT_NE(SipHash({1, 0}).digest(message), SipHash({0, 1}).digest(message));
}

}  // namespace
}  // namespace kvasir::kv::siphash_test
