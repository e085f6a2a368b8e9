#include "server/observe/refusal_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::server::refusal_log_test {
namespace {

TEST(RefusalLog, TellsOnceASecondHowMany) {
  std::vector<std::string> lines;
  observe::RefusalLog log([&](std::string_view line) { lines.emplace_back(line); });
  const observe::RefusalLog::Clock::time_point begin{};
  log.note("queue: full", begin);
  for (int i = 1; i <= 9; ++i) log.note("queue: full", begin + std::chrono::milliseconds(100 * i));
  log.note("queue:\nlate", begin + std::chrono::milliseconds(1000));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "a request was refused: queue: full");
  EXPECT_TRUE(lines[1].starts_with("10 requests were refused, the last: queue:")) << lines[1];
  EXPECT_EQ(lines[1].find('\n'), std::string::npos);
}

}  // namespace
}  // namespace kvasir::server::refusal_log_test
