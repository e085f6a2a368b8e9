#include "base/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/text_file.h"

namespace kvasir::line_writer_test {
namespace {

using Clock = std::chrono::steady_clock;

class LineWriterTest : public testing::Test {
 protected:
  LineWriterTest()
      : folder_(std::filesystem::path(testing::TempDir()) / ("kvasir-lines-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~LineWriterTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "log").string(); }
  LineWriter::OnTrouble noting() {
    return [this](std::string_view what) { troubles_.emplace_back(what); };
  }

  std::filesystem::path folder_;
  std::vector<std::string> troubles_;  // read once the writer is gone
};

TEST_F(LineWriterTest, AppendsInOrder) {
  ASSERT_TRUE(replace_text_file(path(), "before\n"));
  {
    const auto writer = LineWriter::open(path(), noting()).value();
    for (int i = 0; i < 1000; ++i) writer->write(std::to_string(i) + "\n");
  }
  std::string expected = "before\n";
  for (int i = 0; i < 1000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_EQ(read_text_file(path()), expected);
  EXPECT_TRUE(troubles_.empty());
}

TEST_F(LineWriterTest, NamesWhyAFileCannotBeOpened) {
  EXPECT_EQ(LineWriter::open(folder_.string(), {}).error().message, "Is a directory");
  EXPECT_EQ(LineWriter::open((folder_ / "no" / "log").string(), {}).error().message, "No such file or directory");
}

TEST_F(LineWriterTest, WaitsForNoReader) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const auto began = Clock::now();
  std::int64_t num_dropped = 0;
  {
    const auto writer = LineWriter::open(path(), noting()).value();
    const std::string line(1000, 'x');
    for (int i = 0; i < 4000; ++i) writer->write(line + "\n");
    num_dropped = writer->num_dropped();
  }
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(5));
  // There is room for 1 MiB beside another that is being written, of 4 MB, and for what the pipe holds.
  EXPECT_GT(num_dropped, 1700);
}

TEST_F(LineWriterTest, GoesOnWhenAReaderComes) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const auto writer = LineWriter::open(path(), {}).value();
  writer->write("one\n");
  const int reader = ::open(path().c_str(), O_RDONLY);
  ASSERT_GE(reader, 0);
  char buffer[16] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 4);
  EXPECT_STREQ(buffer, "one\n");
  ::close(reader);
}

TEST_F(LineWriterTest, SaysThatAFileIsAtItsLimit) {
  ASSERT_TRUE(replace_text_file(path(), std::string(100, 'x')));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    const auto writer = LineWriter::open(path(), noting()).value();
    writer->write("lost\n");
    writer->write("lost too\n");
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(troubles_, std::vector<std::string>{"File too large"});
}

}  // namespace
}  // namespace kvasir::line_writer_test
