#include "kvasir/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::sampling_params_test {
namespace {

constexpr std::int32_t kVocabSize = 100;

struct BadCase {
  std::string param;
  std::string message;
  void (*spoil)(SamplingParams&);
};

TEST(SamplingParams, DefaultsAndLimitsThemselvesAreValid) {
  EXPECT_TRUE(validate({}, kVocabSize));
  SamplingParams params{.temperature = 0.0f, .top_k = 1 << 30, .top_p = 0.0f, .min_p = 1.0f};
  params.presence_penalty = -2.0f;
  params.frequency_penalty = 2.0f;
  params.n = kMaxChoices;
  params.max_tokens = 0;
  params.logprobs = kMaxLogprobs;
  params.prompt_logprobs = 0;
  params.stop.assign(kMaxStopStrings, std::string(kMaxStopStringBytes, 'x'));
  params.stop_token_ids = {0, kVocabSize - 1};
  params.logit_bias.assign(kMaxLogitBias, {kVocabSize - 1, -100.0f});
  EXPECT_TRUE(validate(params, kVocabSize));
}

TEST(SamplingParams, NamesFieldLimitAndValueOfWhatIsOutOfRange) {
  const std::vector<BadCase> cases = {
      {"temperature", "temperature must be finite and 0 or greater, got -0.5",
       [](auto& p) { p.temperature = -0.5f; }},
      {"temperature", "temperature must be finite and 0 or greater, got nan",
       [](auto& p) { p.temperature = std::nanf(""); }},
      {"temperature", "temperature must be finite and 0 or greater, got inf",
       [](auto& p) { p.temperature = INFINITY; }},
      {"top_k", "top_k must be 0 (off) or greater, got -1", [](auto& p) { p.top_k = -1; }},
      {"top_p", "top_p must be between 0 and 1, got -0.5", [](auto& p) { p.top_p = -0.5f; }},
      {"top_p", "top_p must be between 0 and 1, got 1.5", [](auto& p) { p.top_p = 1.5f; }},
      {"min_p", "min_p must be between 0 and 1, got 2", [](auto& p) { p.min_p = 2.0f; }},
      {"repetition_penalty", "repetition_penalty must be finite and above 0, got 0",
       [](auto& p) { p.repetition_penalty = 0.0f; }},
      {"presence_penalty", "presence_penalty must be between -2 and 2, got 3",
       [](auto& p) { p.presence_penalty = 3.0f; }},
      {"frequency_penalty", "frequency_penalty must be between -2 and 2, got -2.5",
       [](auto& p) { p.frequency_penalty = -2.5f; }},
      {"logit_bias", "logit_bias must be token ids from 0 to 99, got 100",
       [](auto& p) {
         p.logit_bias = {{100, 1}};
       }},
      {"logit_bias", "logit_bias must be between -100 and 100, got 101",
       [](auto& p) {
         p.logit_bias = {{1, 101}};
       }},
      {"logit_bias", "logit_bias must be at most 65536 entries, got 65537",
       [](auto& p) {
         p.logit_bias.assign(65537, {1, 1.0f});
       }},
      {"n", "n must be between 1 and 128, got 0", [](auto& p) { p.n = 0; }},
      {"max_tokens", "max_tokens must be 0 or greater, got -1", [](auto& p) { p.max_tokens = -1; }},
      {"min_tokens", "min_tokens must be 0 or greater, got -1", [](auto& p) { p.min_tokens = -1; }},
      {"min_tokens", "min_tokens must be at most max_tokens = 3, got 4",
       [](auto& p) {
         p.max_tokens = 3;
         p.min_tokens = 4;
       }},
      {"stop", "stop must be at most 1024 strings, got 1025", [](auto& p) { p.stop.assign(1025, "x"); }},
      {"stop", "stop must be strings of 1 to 65536 bytes, got 0 bytes", [](auto& p) { p.stop = {""}; }},
      {"stop", "stop must be valid UTF-8, got other bytes", [](auto& p) { p.stop = {"\xff"}; }},
      {"stop_token_ids", "stop_token_ids must be token ids from 0 to 99, got -1",
       [](auto& p) { p.stop_token_ids = {-1}; }},
      {"logprobs", "logprobs must be between 0 and 1000, got 1001", [](auto& p) { p.logprobs = 1001; }},
      {"prompt_logprobs", "prompt_logprobs must be between 0 and 1000, got -1",
       [](auto& p) { p.prompt_logprobs = -1; }},
  };
  for (const BadCase& bad : cases) {
    SamplingParams params;
    bad.spoil(params);
    const Status status = validate(params, kVocabSize);
    ASSERT_FALSE(status) << bad.message;
    EXPECT_EQ(status.error().message, bad.message);
    EXPECT_EQ(status.error().param, bad.param);
    EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace kvasir::sampling_params_test
