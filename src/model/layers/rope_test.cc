#include "model/layers/rope.h"

#include <gtest/gtest.h>

#include <vector>

namespace kvasir::model::rope_test {
namespace {

RopeConfig yarn(bool rounds) {
  return {.freq_base = 1e4,
          .scaling = RopeScaling::kYarn,
          .factor = 8.0,
          .original_context_tokens = 4096,
          .yarn_rounds = rounds,
          .rotary_dim = 8};
}

void expect_near(const std::vector<double>& frequencies, const std::vector<double>& expected) {
  ASSERT_EQ(frequencies.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(frequencies[i], expected[i], 1e-12) << i;
}

// The expected numbers are those of transformers 5.24, modeling_rope_utils.py.
TEST(Rope, YarnDividesTheSlowFrequenciesAlone) {
  expect_near(inverse_frequencies(yarn(true)), {1.0, 0.1, 0.005625, 0.000125});
  expect_near(inverse_frequencies(yarn(false)), {1.0, 0.1, 0.005983133441317673, 0.000125});
}

TEST(Rope, LinearScalingAndTheFilesDivisorsDivide) {
  const RopeConfig linear{.freq_base = 1e4, .scaling = RopeScaling::kLinear, .factor = 4.0, .rotary_dim = 4};
  expect_near(inverse_frequencies(linear), {0.25, 0.0025});
  const RopeConfig divided{.freq_base = 1e4, .rotary_dim = 4, .freq_factors = {1.0f, 2.0f}};
  expect_near(inverse_frequencies(divided), {1.0, 0.005});
}

TEST(RopeKinds, LayersThatTurnAlikeShareAKind) {
  RopeKinds kinds;
  const RopeConfig global{.freq_base = 1e6, .attention_factor = 1.25, .rotary_dim = 8};
  RopeConfig none = global;
  none.rotary_dim = 0;
  EXPECT_EQ(kinds.add(global, backend::RopeStyle::kHalves), 0);
  EXPECT_EQ(kinds.add(none, backend::RopeStyle::kHalves), 1);
  EXPECT_EQ(kinds.add(global, backend::RopeStyle::kHalves), 0);
  EXPECT_EQ(kinds.add(global, backend::RopeStyle::kInterleaved), 2);
  ASSERT_EQ(kinds.tables().size(), 3u);
  EXPECT_EQ(kinds.tables()[0].factor, 1.25f);
  EXPECT_TRUE(kinds.tables()[1].inverse_frequencies.empty());
}

}  // namespace
}  // namespace kvasir::model::rope_test
