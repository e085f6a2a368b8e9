#include "base/logger.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <thread>
#include <vector>

namespace kvasir::logger_test {
namespace {

class LoggerTest : public ::testing::Test {
 protected:
  LoggerTest() : file_(std::tmpfile()) {}
  ~LoggerTest() override { std::fclose(file_); }

  std::vector<std::string> lines() {
    std::rewind(file_);
    std::vector<std::string> out(1);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      if (c == '\n') {
        out.emplace_back();
      } else {
        out.back() += static_cast<char>(c);
      }
    }
    EXPECT_EQ(out.back(), "") << "the last line is whole";
    out.pop_back();
    return out;
  }

  std::FILE* file_;
};

TEST_F(LoggerTest, WritesTimeLevelAndMessageOnOneLine) {
  Logger log({.stream = file_});
  log.info("loaded {} in {:.2f} s", "m.gguf", 0.314);
  const std::regex shape(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info    loaded m\.gguf in 0\.31 s)");
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_TRUE(std::regex_match(lines()[0], shape)) << lines()[0];
}

TEST_F(LoggerTest, DropsWhatIsBelowItsLevel) {
  Logger log({.level = LogLevel::kWarning, .stream = file_});
  log.debug("no");
  log.info("no");
  log.warning("yes");
  log.error("yes");
  EXPECT_EQ(lines().size(), 2u);
}

TEST_F(LoggerTest, LetsNoControlCharacterThrough) {
  Logger log({.stream = file_});
  log.info("{}", "a\nb\x1b[31m\xff");
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_NE(lines()[0].find("a\\x0ab\\x1b[31m\\xff"), std::string::npos);
}

TEST_F(LoggerTest, WritesJsonLines) {
  Logger log({.format = LogFormat::kJson, .stream = file_});
  log.error("a \"quote\"\n");
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_NE(lines()[0].find(R"("level":"error","message":"a \"quote\"\n"})"), std::string::npos);
}

TEST_F(LoggerTest, KeepsLinesOfManyThreadsApart) {
  Logger log({.stream = file_});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 100; ++i) log.info("{}", std::string(50, 'x'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> all = lines();
  EXPECT_EQ(all.size(), 400u);
  for (const std::string& line : all) EXPECT_EQ(line.size(), all[0].size());
}

}  // namespace
}  // namespace kvasir::logger_test
