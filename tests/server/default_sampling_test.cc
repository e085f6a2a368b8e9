#include "server/api/default_sampling.h"

#include <gtest/gtest.h>

#include "server/api/openai/chat_fields.h"
#include "server/limits.h"

namespace kvasir::server::default_sampling_test {
namespace {

SamplingParams model_defaults() {
  SamplingParams defaults;
  defaults.temperature = 0.5f;
  defaults.top_k = 30;
  defaults.top_p = 0.75f;
  defaults.min_p = 0.25f;
  defaults.repetition_penalty = 1.5f;
  defaults.presence_penalty = 2.0f;  // not among those that a model advises
  return defaults;
}

// The sampling of a chat with these fields.
SamplingParams sampling_of(const std::string& fields) {
  const Limits limits;
  api::Warnings warnings;
  auto request = api::parse_chat_request(R"({"messages":[{"role":"user","content":"x"}])" + fields + "}",
                                         limits, warnings);
  EXPECT_TRUE(request.has_value());
  if (!request) return {};
  api::fill_sampling(request->sampling, model_defaults());
  return request->sampling;
}

TEST(DefaultSampling, FillsWhatTheRequestDoesNotSay) {
  for (const char* fields : {"", R"(,"temperature":null,"top_p":null,"top_k":null,"min_p":null)"}) {
    const SamplingParams sampling = sampling_of(fields);
    EXPECT_EQ(sampling.temperature, 0.5f);
    EXPECT_EQ(sampling.top_k, 30);
    EXPECT_EQ(sampling.top_p, 0.75f);
    EXPECT_EQ(sampling.min_p, 0.25f);
    EXPECT_EQ(sampling.repetition_penalty, 1.5f);
    EXPECT_EQ(sampling.presence_penalty, 0.0f);
  }
}

TEST(DefaultSampling, WhatTheRequestSaysWins) {
  const SamplingParams sampling = sampling_of(
      R"(,"temperature":0,"top_k":-1,"top_p":1,"min_p":0,"repetition_penalty":1)");
  EXPECT_EQ(sampling.temperature, 0.0f);
  EXPECT_EQ(sampling.top_k, 0);  // -1 is off, and off is said
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.min_p, 0.0f);
  EXPECT_EQ(sampling.repetition_penalty, 1.0f);
}

}  // namespace
}  // namespace kvasir::server::default_sampling_test
