// Rows of a KV evaluation: kept over interruptions, added up, and held against the gate.
#include "eval/kv_summary.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "eval/kv_row.h"

namespace kvasir::eval::kv_summary_test {
namespace {

KvRow window(std::int32_t item, double excess_nll, double budget = 0.3) {
  KvRow row{.suite = "p2", .ctx_tokens = 2048, .item = item, .policy = "ladder"};
  row.budget = budget;
  row.bytes_share = budget - 0.001;
  row.num_tokens = 100;
  row.full_nll = 3.0;
  row.nll = 3.0 + excess_nll;
  return row;
}

std::vector<KvRow> windows(std::int32_t count, double excess_nll) {
  std::vector<KvRow> rows;
  for (std::int32_t i = 0; i < count; ++i) rows.push_back(window(i, excess_nll));
  return rows;
}

bool holds(const std::vector<KvRow>& rows) {
  const auto claims = check_gate(summarise(rows));
  return !claims.empty() && std::ranges::all_of(claims, &KvClaim::holds);
}

TEST(KvGate, HoldsWhereNothingIsLost) {
  EXPECT_TRUE(holds(windows(20, 0.0)));
  EXPECT_TRUE(holds(windows(20, 0.015)));
}

TEST(KvGate, FailsForEachThingItAsksFor) {
  EXPECT_FALSE(holds(windows(20, 0.03))) << "the ratio";
  EXPECT_FALSE(holds(windows(19, 0.0))) << "too few windows";
  std::vector<KvRow> one_bad = windows(100, 0.0);
  one_bad[7].nll += 0.06;
  EXPECT_FALSE(holds(one_bad)) << "the worst window";
  std::vector<KvRow> inactive = windows(20, 0.0);
  for (KvRow& row : inactive) row.bytes_share = 1.0;
  EXPECT_FALSE(holds(inactive)) << "the bytes of a policy that did nothing";
}

TEST(KvGate, NamesWhatWasNotMeasured) {
  std::vector<KvRow> rows;
  EXPECT_EQ(missing_from_gate(summarise(rows), "ladder", 8192).size(), 12u + 48u);
  EXPECT_EQ(missing_from_gate(summarise(rows), "ladder", 4096).size(), 12u + 36u);
  for (const double budget : {0.5, 0.4, 0.3, 0.25}) {
    for (const char* suite : {"p1", "p2", "needle-late", "needle-aware", "needle-keys"}) {
      for (const std::int32_t ctx_tokens : {1024, 2048, 4096}) {
        rows.push_back({.suite = suite, .ctx_tokens = ctx_tokens, .policy = "ladder"});
        rows.back().budget = budget;
      }
    }
  }
  EXPECT_TRUE(missing_from_gate(summarise(rows), "ladder", 8000).empty());
  EXPECT_FALSE(missing_from_gate(summarise(rows), "uniform", 8000).empty());
  std::erase_if(rows, [](const KvRow& row) {
    return row.suite == "needle-keys" && row.budget == 0.25 && row.ctx_tokens == 4096;
  });
  const auto claims = missing_from_gate(summarise(rows), "ladder", 8000);
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].text, "needle-keys ladder of 25% at 4096: not measured");
  EXPECT_FALSE(claims[0].holds);
}

std::vector<KvRow> needles(std::int32_t count) {
  std::vector<KvRow> rows;
  for (std::int32_t item = 0; item < count; ++item) {
    rows.push_back({.suite = "needle-late", .ctx_tokens = 4096, .item = item, .policy = "ladder"});
    rows.back().budget = rows.back().bytes_share = 0.3;
    rows.back().full_found = rows.back().found = 1;
  }
  return rows;
}

TEST(KvGate, FailsForEachThingItAsksOfNeedles) {
  EXPECT_TRUE(holds(needles(20)));
  EXPECT_FALSE(holds(needles(19))) << "too few";
  std::vector<KvRow> rows = needles(20);
  rows[3].found = 0;
  EXPECT_TRUE(holds(rows)) << "19 of 20";
  rows[7].found = 0;
  EXPECT_FALSE(holds(rows)) << "18 of 20";
  std::vector<KvRow> inactive = needles(20);
  for (KvRow& row : inactive) row.bytes_share = 0.96;
  EXPECT_FALSE(holds(inactive)) << "the bytes of a policy that had no room to act";
}

TEST(KvSummary, BracketsTheRatioByWindows) {
  std::vector<KvRow> rows;
  for (std::int32_t i = 0; i < 20; ++i) rows.push_back(window(i, i % 2 == 0 ? 0.0 : 0.02));
  const KvSummary summary = summarise(rows).front();
  EXPECT_NEAR(summary.ratio, std::exp(0.01), 1e-12);
  EXPECT_NEAR(summary.worst_ratio, std::exp(0.02), 1e-12);
  EXPECT_LT(summary.ratio_low, summary.ratio);
  EXPECT_GT(summary.ratio_high, summary.ratio);
  EXPECT_LT(summary.ratio_high, summary.worst_ratio);
}

TEST(KvGate, CountsTheNeedlesOfAllContextsTogether) {
  std::vector<KvRow> rows;
  for (std::int32_t item = 0; item < 20; ++item) {
    rows.push_back(
        {.suite = "recall", .ctx_tokens = item < 10 ? 1024 : 2048, .item = item, .policy = "ladder"});
    rows.back().budget = rows.back().bytes_share = 0.3;
    rows.back().full_found = 1;
    rows.back().found = item == 3 ? 0 : 1;
  }
  EXPECT_TRUE(holds(rows));  // 19 of 20
  rows[17].found = 0;
  EXPECT_FALSE(holds(rows));
}

class KvRows : public testing::Test {
 protected:
  KvRows() { std::filesystem::remove(path_); }
  ~KvRows() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "kvasir-rows-" + std::to_string(::getpid()) + ".csv";
};

TEST_F(KvRows, AreThereAgainAfterAnInterruption) {
  {
    auto file = KvRowFile::open(path_, "a model");
    ASSERT_TRUE(file && file->add(window(0, 0.25)));
  }
  std::ofstream(path_, std::ios::app) << "p2,2048,1,lad";  // cut off
  for (std::int32_t item : {1, 2}) {
    auto file = KvRowFile::open(path_, "a model");
    ASSERT_TRUE(file);
    EXPECT_EQ(std::ssize(file->rows()), item);
    EXPECT_TRUE(file->has(window(item - 1, 0.0).key()));
    EXPECT_FALSE(file->has(window(item, 0.0).key()));
    EXPECT_EQ(file->rows()[0].nll, 3.25);
    ASSERT_TRUE(file->add(window(item, 0.0)));
  }
}

TEST_F(KvRows, OfAnotherSubjectAreRefused) {
  ASSERT_TRUE(KvRowFile::open(path_, "a model"));
  const auto other = KvRowFile::open(path_, "another model");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::kBadFile);
}

}  // namespace
}  // namespace kvasir::eval::kv_summary_test
