#include "model/known_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kvasir::model::known_keys_test {
namespace {

KeyReport report_of(const std::string& key, io::MetadataValue value) {
  return check_keys(io::Metadata({{"general.architecture", std::string("llama")},
                                  {"llama.block_count", std::int64_t{2}},
                                  {key, std::move(value)}}));
}

TEST(KnownKeys, NeutralValuesPass) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, io::MetadataValue>>{{"llama.attention.clamp_kqv", 0.0},
                                                              {"llama.attention.value_scale", 1.0},
                                                              {"llama.attention.output_scale", 0.0},
                                                              {"llama.use_parallel_residual", false},
                                                              {"llama.expert_used_count", std::int64_t{0}},
                                                              {"llama.rope.scaling.finetuned", true},
                                                              {"llama.vision.block_count", std::int64_t{27}},
                                                              {"gemma3.unknown", 1.0}}) {
    const KeyReport report = report_of(key, value);
    EXPECT_TRUE(report.refused.empty()) << key;
    EXPECT_TRUE(report.unknown.empty()) << key;
  }
}

TEST(KnownKeys, ArithmeticThatIsMissingIsRefused) {
  EXPECT_EQ(
      report_of("llama.attention.clamp_kqv", 50.0).refused,
      std::vector<std::string>{"metadata llama.attention.clamp_kqv: must be 0 or absent, as this is not "
                               "computed here, is 50"});
  EXPECT_EQ(
      report_of("llama.attention.value_scale", 0.0625).refused,
      std::vector<std::string>{"metadata llama.attention.value_scale: must be 1 or absent, as this is not "
                               "computed here, is 0.0625"});
  EXPECT_EQ(report_of("llama.use_parallel_residual", true).refused.size(), 1u);
  EXPECT_EQ(report_of("llama.attention.output_scale", std::string("x")).refused.size(), 1u);
}

TEST(KnownKeys, AnArchitectureMayComputeWhatOthersDoNot) {
  const auto report = [](const std::string& family) {
    return check_keys(
        io::Metadata({{"general.architecture", family}, {family + ".use_parallel_residual", true}}));
  };
  EXPECT_TRUE(report("gptneox").refused.empty());
  EXPECT_EQ(report("glm4").refused.size(), 1u);
}

TEST(KnownKeys, NobodyPassesOverAnUnknownKeyInSilence) {
  EXPECT_EQ(report_of("llama.attention.shiny_new_scale", 3.0).unknown,
            std::vector<std::string>{"llama.attention.shiny_new_scale"});
  EXPECT_TRUE(check_keys(io::Metadata()).unknown.empty());
}

}  // namespace
}  // namespace kvasir::model::known_keys_test
