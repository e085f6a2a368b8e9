#include "kv/blocks/layer_group.h"

#include <gtest/gtest.h>

namespace kvasir::kv::layer_group_test {
namespace {

TEST(LayerGroup, FullAttentionNeedsEveryBlock) {
  const LayerGroup full{.num_blocks = 8};
  EXPECT_EQ(full.first_needed_block(1000), 0);
  EXPECT_EQ(full.peak_blocks(33, 4), 3);
}

TEST(LayerGroup, WindowNeedsTheBlocksOfTheLastWindowOnly) {
  const LayerGroup window{.num_blocks = 8, .window_tokens = 16};
  EXPECT_EQ(window.first_needed_block(0), 0);
  EXPECT_EQ(window.first_needed_block(15), 0);
  EXPECT_EQ(window.first_needed_block(30), 0);                          // sees 15..30
  EXPECT_EQ(window.first_needed_block(31), 1);                          // sees 16..31
  EXPECT_EQ(LayerGroup{.window_tokens = 1}.first_needed_block(48), 3);  // itself only
}

// Slides a sequence of every length by every chunk from every start and counts what it really holds.
TEST(LayerGroup, PeakIsTheMostBlocksEverHeldAtOnce) {
  for (std::int32_t window_tokens : {1, 2, 15, 16, 17, 31, 32, 40}) {
    const LayerGroup group{.window_tokens = window_tokens};
    for (std::int32_t chunk = 1; chunk <= 40; ++chunk) {
      std::int32_t most = 0;
      for (std::int32_t begin = 0; begin < 200; ++begin) {
        most = std::max(most, blocks_for(begin + chunk) - group.first_needed_block(begin));
      }
      EXPECT_EQ(group.peak_blocks(1000, chunk), most) << "window " << window_tokens << ", chunk " << chunk;
    }
  }
}

}  // namespace
}  // namespace kvasir::kv::layer_group_test
