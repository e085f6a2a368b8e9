#include "grammar/bench/mask_bench.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::grammar::mask_bench_test {
namespace {

std::shared_ptr<const Vocabulary> all_bytes() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(views);
}

std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

TEST(MaskBench, InstancesAreTheBytesOfTheLine) {
  const auto found = parse_mask_bench_case(
      R"({"name":"n","schema":{"type": "number"},"tests":[{"valid":true,"data":1.50},{"valid":false,"data":{"a": 1}}]})");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->schema, R"({"type": "number"})");
  ASSERT_EQ(found->tests.size(), 2u);
  EXPECT_EQ(found->tests[0].text, "1.50");
  EXPECT_EQ(found->tests[1].text, R"({"a": 1})");
  EXPECT_FALSE(parse_mask_bench_case(R"({"name":"n","tests":[]})"));
  EXPECT_FALSE(parse_mask_bench_case("[]"));
}

TEST(MaskBench, CountsWhatItFinds) {
  std::int64_t now_ns = 0;
  MaskBench bench(all_bytes(), bytes_of, {.thread_ns = [&] { return now_ns += 100; }});
  bench.run({"right", R"({"type":"integer"})", {{true, "12"}, {false, "\"a\""}, {false, "1.5"}}});
  bench.run({"valid prefix", R"({"type":"array","minItems":1})", {{false, "[1"}}});
  bench.run({"wrong accept", R"({"type":"integer"})", {{false, "7"}}});
  bench.run({"wrong refusal", R"({"type":"integer"})", {{true, "x"}}});
  bench.run({"refused", R"({"$ref":"#/nowhere"})", {{true, "1"}}});
  const MaskBenchReport report = bench.report();
  EXPECT_EQ(report.schemas, 5u);
  EXPECT_EQ(report.passed, 2u);
  EXPECT_EQ(report.refused, 1u);
  EXPECT_EQ(report.wrong_accepts, 1u);
  EXPECT_EQ(report.wrong_refusals, 1u);
  EXPECT_EQ(report.disagreements, 0u);
  EXPECT_EQ(report.instances, 7u);
  EXPECT_EQ(report.compile_ms.count, 4u);
  EXPECT_EQ(report.mask_us.count, 2u + 1 + 2 + 2 + 1 + 1);  // up to the token that is refused
  EXPECT_EQ(report.mask_us.max, 0.0);                       // what the clock takes is taken off
  ASSERT_EQ(report.failures.size(), 3u);
  EXPECT_EQ(report.failures[0].kind, "wrong_accept");
}

}  // namespace
}  // namespace kvasir::grammar::mask_bench_test
