// The part of the budget that the program takes, where other engines share its process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/aligned_buffer.h"
#include "kvasir/engine.h"

namespace kvasir::testing::process_bytes_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(ProcessBytes, OfOthersCountOnlyWhereTheyAreMeasured) {
  AlignedBuffer of_others = AlignedBuffer::allocate(256 * kMiB).value();
  std::ranges::fill(of_others.bytes(), std::byte{1});
  EngineConfig config;
  config.model_path = std::string(KVASIR_SOURCE_DIR) + "/tests/cases/models/llama-f32.gguf";
  config.num_threads = 1;
  config.memory_bytes = 192 * kMiB;
  const auto measured = Engine::load(config);
  ASSERT_FALSE(measured.has_value());
  EXPECT_EQ(measured.error().kind, ErrorKind::kMachine);
  config.process_bytes = 64 * kMiB;
  const auto planned = Engine::load(config);
  EXPECT_TRUE(planned.has_value()) << planned.error().message;
}

}  // namespace
}  // namespace kvasir::testing::process_bytes_test
