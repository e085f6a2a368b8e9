#include "kv/policy/formats.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "kv/policy/policy.h"

namespace kvasir::kv::formats_test {
namespace {

TEST(KvFormats, OfALadderLoseMorePerByteFromRungToRung) {
  constexpr std::int32_t kHeadDim = 64;
  const CellStore::Group group{.num_blocks = 1, .cells_per_block = 1, .head_dim = kHeadDim};
  for (const KvFormat finest : {KvFormat::kF16, KvFormat::kQ12}) {
    const CellStore cells({&group, 1}, finest, CellArena::bytes_for(1, KvFormat::kF16, kHeadDim),
                          0);
    FormatCosts costs = usual_format_costs();
    costs[KvFormat::kK8V4] = 0.08f;  // dearer than what is coarser
    const KvPolicySettings settings;
    const auto rungs = ladder_of({.cells = cells, .settings = settings, .costs = costs});
    EXPECT_EQ(rungs.front().format, finest);
    EXPECT_EQ(rungs.front().bytes, cell_bytes(finest, kHeadDim));
    EXPECT_EQ(rungs.back().format, KvFormat::kGone);
    float before = 0.0f;
    for (std::size_t i = 1; i < rungs.size(); ++i) {
      EXPECT_NE(rungs[i].format, KvFormat::kK8V4);
      const float loss =
          (rungs[i].cost - rungs[i - 1].cost) / static_cast<float>(rungs[i - 1].bytes - rungs[i].bytes);
      EXPECT_GT(loss, before);
      before = loss;
    }
  }
}

// Formats of integer codes hold 32 channels at a time.
TEST(KvFormats, OfALadderAreF16AloneWhereNoFormatIsCoarser) {
  constexpr std::int32_t kSmallHeadDim = 16;
  const CellStore::Group group{.num_blocks = 1, .cells_per_block = 1, .head_dim = kSmallHeadDim};
  const CellStore cells({&group, 1}, KvFormat::kF16,
                        CellArena::bytes_for(1, KvFormat::kF16, kSmallHeadDim), 0);
  const FormatCosts costs = usual_format_costs();
  const KvPolicySettings settings;
  const auto rungs = ladder_of({.cells = cells, .settings = settings, .costs = costs});
  ASSERT_EQ(rungs.size(), 2);
  EXPECT_EQ(rungs.front().format, KvFormat::kF16);
  EXPECT_EQ(rungs.back().format, KvFormat::kGone);
}

}  // namespace
}  // namespace kvasir::kv::formats_test
