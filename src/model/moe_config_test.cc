#include "model/moe_config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "model/moe_workspace.h"

namespace kvasir::model::moe_config_test {
namespace {

using Values = std::map<std::string, io::MetadataValue, std::less<>>;

Values valid_keys() {
  return {{"x.expert_count", std::uint64_t{8}},
          {"x.expert_used_count", std::uint64_t{2}},
          {"x.expert_feed_forward_length", std::uint64_t{96}},
          {"x.feed_forward_length", std::uint64_t{512}}};
}

// `valid_keys()` with some others instead.
Result<MoeConfig> read(const Values& changes, const MoeDefaults& defaults = {}) {
  Values values = valid_keys();
  for (const auto& [key, value] : changes) values.insert_or_assign(key, value);
  return read_moe_config(io::Metadata(values), "x.", defaults);
}

TEST(MoeConfig, AFileWithoutExpertsIsDense) {
  const auto none = read_moe_config(io::Metadata(Values{}), "x.", {});
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(none->has_experts());
  EXPECT_FALSE(none->has_experts(0));
  EXPECT_EQ(moe_workspace_row_bytes(*none, 64), 0);
}

TEST(MoeConfig, WhatTheFileDoesNotSayIsTheFamilys) {
  const auto moe = read({}, {.score = backend::RouterScore::kSigmoid, .renormalizes = false});
  ASSERT_TRUE(moe) << moe.error().message;
  EXPECT_EQ(moe->rule.num_experts, 8);
  EXPECT_EQ(moe->rule.num_used, 2);
  EXPECT_EQ(moe->rule.score, backend::RouterScore::kSigmoid);
  EXPECT_FALSE(moe->rule.renormalizes);
  EXPECT_EQ(moe->rule.weight_scale, 1.0);
  EXPECT_EQ(moe->intermediate_size, 96);
  EXPECT_EQ(moe->shared_intermediate_size, 0);
  EXPECT_TRUE(moe->has_experts(0));
}

TEST(MoeConfig, TheFilesKeysCount) {
  const auto moe = read({{"x.expert_gating_func", std::uint64_t{2}},
                         {"x.expert_weights_norm", true},
                         {"x.expert_weights_scale", 2.5},
                         {"x.expert_group_count", std::uint64_t{4}},
                         {"x.expert_group_used_count", std::uint64_t{2}},
                         {"x.expert_shared_count", std::uint64_t{2}},
                         {"x.leading_dense_block_count", std::uint64_t{1}}},
                        {.renormalizes = false});
  ASSERT_TRUE(moe) << moe.error().message;
  EXPECT_EQ(moe->rule.score, backend::RouterScore::kSigmoid);
  EXPECT_TRUE(moe->rule.renormalizes);
  EXPECT_EQ(moe->rule.weight_scale, 2.5);
  EXPECT_EQ(moe->rule.num_groups, 4);
  EXPECT_EQ(moe->rule.num_used_groups, 2);
  EXPECT_EQ(moe->shared_intermediate_size, 2 * 96);
  EXPECT_FALSE(moe->has_experts(0));
  EXPECT_TRUE(moe->has_experts(1));
}

TEST(MoeConfig, ASoftmaxOfTheChosenIsRenormalised) {
  const auto moe = read({{"x.expert_gating_func", std::uint64_t{3}}}, {.renormalizes = false});
  ASSERT_TRUE(moe) << moe.error().message;
  EXPECT_EQ(moe->rule.score, backend::RouterScore::kSoftmax);
  EXPECT_TRUE(moe->rule.renormalizes);
}

TEST(MoeConfig, ExpertsWithoutAWidthAreAsWideAsDenseLayers) {
  const auto moe = read({{"x.expert_feed_forward_length", std::uint64_t{0}}}, {.has_shared_expert = true});
  ASSERT_TRUE(moe) << moe.error().message;
  EXPECT_EQ(moe->intermediate_size, 512);
  EXPECT_EQ(moe->shared_intermediate_size, 512);
}

TEST(MoeConfig, AFaultIsNamed) {
  const std::pair<Values, std::string> cases[] = {
      {{{"x.expert_used_count", std::uint64_t{9}}}, "metadata: x.expert_used_count must be between 1 and 8"},
      {{{"x.expert_count", std::uint64_t{1 << 20}}}, "metadata: x.expert_count must be between 0 and 1024"},
      {{{"x.expert_gating_func", std::uint64_t{7}}},
       "metadata x.expert_gating_func: must be 1 (softmax), 2 (sigmoid) or 3 (softmax of the chosen), is 7"},
      {{{"x.expert_weights_scale", -1.0}}, "metadata x.expert_weights_scale: must be above 0, is -1"},
      {{{"x.expert_group_count", std::uint64_t{3}}},
       "metadata x.expert_group_count: must divide the 8 experts, is 3"},
      {{{"x.expert_group_count", std::uint64_t{8}}, {"x.expert_group_used_count", std::uint64_t{1}}},
       "metadata x.expert_group_used_count: 1 groups must have at least expert_used_count 2 experts, have 1"},
  };
  for (const auto& [changes, message] : cases) {
    const auto moe = read(changes);
    ASSERT_FALSE(moe);
    EXPECT_EQ(moe.error().kind, ErrorKind::kBadFile);
    EXPECT_TRUE(moe.error().message.starts_with(message)) << moe.error().message;
  }
}

}  // namespace
}  // namespace kvasir::model::moe_config_test
