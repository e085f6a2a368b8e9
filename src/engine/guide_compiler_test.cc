#include "engine/guide_compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/process_memory.h"
#include "engine/guide_fixture.h"

namespace kvasir::guide_test {
namespace {

class GuideCompilerTest : public GuideFixture {};

TEST_F(GuideCompilerTest, ErrorsNameTheFieldAndThePlace) {
  const Error schema = error_of({.text = R"({"properties":{"a":{"$ref":"#/nowhere"}}})", .field = "response_format"});
  EXPECT_EQ(schema.param, "response_format");
  EXPECT_TRUE(schema.message.starts_with("response_format: ")) << schema.message;
  EXPECT_NE(schema.message.find("/properties/a"), std::string::npos) << schema.message;
  EXPECT_EQ(error_of({.kind = Guide::Kind::kRegex, .text = "(a"}).param, "guide");
  EXPECT_EQ(error_of({.kind = Guide::Kind::kRegex, .text = "$"}).kind, ErrorKind::kUsage) << "only the empty text";
  EXPECT_EQ(error_of({.kind = Guide::Kind::kChoice}).kind, ErrorKind::kUsage);
  EXPECT_EQ(error_of({.kind = Guide::Kind::kChoice, .choices = {"a", ""}}).kind, ErrorKind::kUsage);
  EXPECT_EQ(error_of({.kind = Guide::Kind::kRegex, .text = std::string(17 << 10, 'a')}).kind, ErrorKind::kUnmet);
}

TEST_F(GuideCompilerTest, CompilesOnceForManyRequests) {
  const Guide guide = {.text = R"({"type":"object"})"};
  EXPECT_EQ(*compiler_.compile(guide, ""), *compiler_.compile(guide, ""));
  Guide other = guide;
  other.kind = Guide::Kind::kRegex;
  other.text = "a+";
  EXPECT_NE(*compiler_.compile(guide, ""), *compiler_.compile(other, ""));
}

TEST_F(GuideCompilerTest, PreparesOnAnotherThreadAndAtOnceWhatIsKnown) {
  const Guide guide = {.text = R"({"type":"array"})"};
  std::promise<std::thread::id> prepared;
  compiler_.prepare(guide, "", {}, [&](const Result<CompiledGuide>& compiled) {
    EXPECT_TRUE(compiled);
    prepared.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(prepared.get_future().get(), std::this_thread::get_id());
  std::thread::id at_once;
  compiler_.prepare(guide, "", {}, [&](const auto&) { at_once = std::this_thread::get_id(); });
  EXPECT_EQ(at_once, std::this_thread::get_id());
}

TEST_F(GuideCompilerTest, CompilesNothingForAClientThatHasLeft) {
  std::stop_source left;
  left.request_stop();
  std::promise<ErrorKind> told;
  compiler_.prepare({.kind = Guide::Kind::kRegex, .text = "(a"}, "", left.get_token(),
                    [&](const auto& compiled) { told.set_value(compiled.error().kind); });
  EXPECT_EQ(told.get_future().get(), ErrorKind::kCancelled);
}

TEST_F(GuideCompilerTest, ATenantWithManyGuidesLosesItsOwn) {
  GuideCompiler small(tokenizer_.get(), 4 << 20);
  const auto guide_of = [](int i) {
    return Guide{.kind = Guide::Kind::kRegex, .text = "[a-z]{" + std::to_string(i) + "}" + std::string(8 << 10, 'a')};
  };
  ASSERT_TRUE(small.compile(guide_of(1), "calm"));
  for (int i = 2; i < 60; ++i) ASSERT_TRUE(small.compile(guide_of(i), "eager"));
  EngineStats before, after;
  small.describe(before);
  EXPECT_LE(before.guide_bytes, 4 << 20);
  ASSERT_TRUE(small.compile(guide_of(1), "calm"));
  small.describe(after);
  EXPECT_EQ(after.num_guides_known, before.num_guides_known + 1) << "it is still there";
  ASSERT_TRUE(small.compile(guide_of(2), "eager"));
  small.describe(after);
  EXPECT_EQ(after.num_guides_compiled, before.num_guides_compiled + 1) << "it has gone";
}

TEST_F(GuideCompilerTest, GuidesInUseAreBoundedToo) {
  GuideCompiler small(tokenizer_.get(), 1);
  std::vector<CompiledGuide> held;
  Result<CompiledGuide> compiled = CompiledGuide();
  for (int i = 1; i < 20 && compiled; ++i) {
    compiled = small.compile({.kind = Guide::Kind::kRegex, .text = "[a-z]{" + std::to_string(i) + "}"}, "");
    if (!compiled) break;
    static_cast<void>(choice_of(*compiled).allowed());  // it grows with use
    held.push_back(*compiled);
  }
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().kind, ErrorKind::kUnavailable);
  held.clear();
  EXPECT_TRUE(small.compile({.kind = Guide::Kind::kRegex, .text = "b"}, "")) << "those who held them have gone";
}

// A schema of its own for each number, of about 40 members.
Guide large_guide(int number) {
  std::string schema = R"({"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"const":)";
  schema += std::to_string(number) + "}";
  for (int i = 0; i < 40; ++i) {
    schema += fmt::format(R"(,"p{}_{}":{})", number, i, (i % 2 == 0 ? R"({"type":"string"})" : R"({"type":"integer"})"));
  }
  return {.text = schema + "}}"};
}

TEST_F(GuideCompilerTest, AGuideCountsWhatTheAllocatorGivesForIt) {
  if (heap_bytes() == 0) GTEST_SKIP() << "the allocator of a sanitizer counts nothing";
  GuideCompiler compiler(tokenizer_.get(), std::int64_t{256} << 20);
  ASSERT_TRUE(compiler.compile(large_guide(0), ""));  // makes the vocabulary
  const std::int64_t before_bytes = heap_bytes();
  std::int64_t counted_bytes = 0;
  for (int i = 1; i <= 40; ++i) {
    const auto guide = compiler.compile(large_guide(i), "");
    ASSERT_TRUE(guide);
    GuidedChoice choice = choice_of(*guide);
    for (const char byte : fmt::format(R"({{"id":{},"p{}_0":"a)", i, i)) {
      static_cast<void>(choice.allowed());
      choice.push(byte_token(byte), 1);
    }
    counted_bytes += static_cast<std::int64_t>((*guide)->size_bytes());
  }
  const auto held_bytes = static_cast<double>(heap_bytes() - before_bytes);
  EXPECT_GT(static_cast<double>(counted_bytes), 0.9 * held_bytes);
  EXPECT_LT(static_cast<double>(counted_bytes), 1.5 * held_bytes);
}

TEST_F(GuideCompilerTest, TheProcessGrowsByNoMoreThanGuidesMayTake) {
  constexpr std::int64_t kMaxBytes = 8 << 20;
  GuideCompiler compiler(tokenizer_.get(), kMaxBytes);
  ASSERT_TRUE(compiler.compile(large_guide(0), ""));
  trim_heap();
  const std::int64_t before_bytes = rss_bytes();
  for (int i = 1; i <= 300; ++i) ASSERT_TRUE(compiler.compile(large_guide(i), ""));
  EXPECT_LT(rss_bytes() - before_bytes, kMaxBytes + (4 << 20));
}

TEST_F(GuideCompilerTest, NobodyWaitsForACompilerThatHasClosed) {
  std::atomic<int> num_told = 0;
  for (int i = 1; i < 30; ++i) {
    compiler_.prepare({.kind = Guide::Kind::kRegex, .text = "[a-z]{" + std::to_string(i) + "}"}, "", {},
                      [&](const auto&) { ++num_told; });
  }
  compiler_.close();
  EXPECT_EQ(num_told, 29);
  compiler_.prepare({.kind = Guide::Kind::kRegex, .text = "other"}, "", {}, [&](const auto& compiled) {
    EXPECT_EQ(compiled.error().kind, ErrorKind::kUnavailable);
    ++num_told;
  });
  EXPECT_EQ(num_told, 30);
}

TEST_F(GuideCompilerTest, RefusalsAreCountedByKeyword) {
  EXPECT_FALSE(compiler_.compile({.text = R"({"properties":{"a":{"$ref":"#/nowhere"}}})"}, ""));
  EXPECT_FALSE(compiler_.compile({.kind = Guide::Kind::kRegex, .text = "(a"}, ""));
  EngineStats stats;
  compiler_.describe(stats);
  EXPECT_EQ(stats.num_guides_refused, 2);
  ASSERT_EQ(stats.guide_refusals.size(), 2u);
  EXPECT_EQ(stats.guide_refusals[0].keyword, "$ref");
  EXPECT_EQ(stats.guide_refusals[1].keyword, "regex");
}

}  // namespace
}  // namespace kvasir::guide_test
