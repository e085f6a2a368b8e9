#include "engine/sampling_metadata.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::sampling_metadata_test {
namespace {

TEST(SamplingMetadata, TheFileWinsKeyByKey) {
  const io::Metadata metadata({{"general.sampling.temp", 0.25},
                               {"general.sampling.top_k", std::int64_t{20}},
                               {"general.sampling.penalty_repeat", 1.5}});
  const SamplingParams params = read_sampling(metadata).value();
  EXPECT_EQ(params.temperature, 0.25f);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.top_p, 0.95f);  // as usual
  EXPECT_EQ(params.min_p, 0.0f);
  EXPECT_EQ(params.repetition_penalty, 1.5f);
  EXPECT_TRUE(sampling_notices(metadata).empty());
}

TEST(SamplingMetadata, AFileThatSaysNothingAdvisesNothing) {
  EXPECT_FALSE(read_sampling(io::Metadata({{"general.name", std::string("x")}})));
  EXPECT_EQ(usual_sampling().temperature, 0.7f);
  EXPECT_EQ(usual_sampling().top_k, 40);
  EXPECT_EQ(usual_sampling().top_p, 0.95f);
}

TEST(SamplingMetadata, NamesWhatItLeavesOut) {
  const io::Metadata metadata({{"general.sampling.temp", -1.0},
                               {"general.sampling.top_p", std::string("high")},
                               {"general.sampling.top_k", std::int64_t{-1}},
                               {"general.sampling.xtc_probability", 0.5},
                               {"general.sampling.mirostat", std::int64_t{0}}});
  EXPECT_EQ(read_sampling(metadata).value().top_k, 0);
  EXPECT_EQ(read_sampling(metadata).value().temperature, 0.7f);
  EXPECT_EQ(sampling_notices(metadata),
            (std::vector<std::string>{
                "general.sampling.temp is -1: ignored", "general.sampling.top_p is no number: ignored",
                "general.sampling.xtc_probability is 0.5: there is no such sampler here"}));
}

}  // namespace
}  // namespace kvasir::sampling_metadata_test
