#include "eval/kv_report.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

namespace kvasir::eval::kv_report_test {
namespace {

// Labels of the axis of ratios, from the top.
std::vector<std::string> ratio_labels(const std::string& page) {
  static const std::regex kLabel("text-anchor=\"end\">([^<]*)<");
  std::vector<std::string> labels;
  for (std::sregex_iterator it(page.begin(), page.end(), kLabel), end; it != end; ++it) labels.push_back((*it)[1]);
  return labels;
}

TEST(KvReport, LabelsOfAnAxisDifferHoweverCloseTheValuesAre) {
  for (const double spread : {1.0, 0.01, 0.0004, 0.0}) {
    std::vector<KvSummary> summaries;
    for (const double budget : {0.5, 0.3}) {
      summaries.push_back({.suite = "p2", .ctx_tokens = 2048, .policy = "ladder", .budget = budget, .num_items = 2});
      summaries.back().bytes_share = budget;
      summaries.back().ratio = 1.0 + (budget < 0.4 ? spread : 0.0);
    }
    const auto labels = ratio_labels(kv_report("smollm2:135m", {}, summaries, {}, {}));
    ASSERT_EQ(labels.size(), 6u) << spread;
    EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), 6u) << spread << " " << labels[1];
  }
}

}  // namespace
}  // namespace kvasir::eval::kv_report_test
