#include "cli/chat/history_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kvasir::cli::history_file_test {
namespace {

class History : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "kvasir-history";
  const std::string path_ = (folder_ / "state" / "history").string();
  HistoryFile file_{path_};
};

TEST_F(History, MessagesOfSeveralLinesComeBack) {
  ASSERT_TRUE(file_.load());
  const std::vector<std::string> messages = {"one", "two\nlines \\n", "\xE5\xA4\xA9 \\"};
  for (const std::string& message : messages) ASSERT_TRUE(file_.append(message));
  EXPECT_EQ(HistoryFile(path_).load().value(), messages);
}

TEST_F(History, OnlyItsOwnerMayReadIt) {
  std::filesystem::create_directories(folder_ / "state");
  std::ofstream(path_) << "old\n";
  ::chmod(path_.c_str(), 0644);
  ASSERT_TRUE(file_.load());
  struct stat status = {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(History, TwoChatsLoseNothingOfEachOther) {
  HistoryFile other(path_);
  ASSERT_TRUE(file_.load() && other.load());
  ASSERT_TRUE(file_.append("a") && other.append("b") && file_.append("c"));
  EXPECT_EQ(other.load().value(), std::vector<std::string>({"a", "b", "c"}));
}

TEST_F(History, ItIsBounded) {
  ASSERT_TRUE(file_.load());
  ASSERT_TRUE(file_.append(std::string(HistoryFile::kMaxEntryBytes + 1, 'x')));
  EXPECT_TRUE(file_.load().value().empty()) << "too long a message";
  {
    std::ofstream stream(path_);
    for (std::size_t i = 0; i < 2 * HistoryFile::kMaxEntries + 1; ++i) stream << i << '\n';
  }
  const auto messages = file_.load().value();
  EXPECT_EQ(messages.size(), HistoryFile::kMaxEntries);
  EXPECT_EQ(messages.back(), std::to_string(2 * HistoryFile::kMaxEntries));
  EXPECT_EQ(file_.load().value(), messages) << "the file was cut down";
  std::ofstream(path_) << std::string(3 * HistoryFile::kMaxBytes, 'x');
  EXPECT_TRUE(file_.load().value().empty());
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
}

TEST_F(History, WhereItCannotBeItSaysSo) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "state") << "a file";
  const auto loaded = file_.load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("cannot keep the history"), std::string::npos);
}

TEST_F(History, TheStateFolderDecidesWhereItIs) {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, 1); };
  set("HOME", "/h");
  set("XDG_STATE_HOME", "/s");
  EXPECT_EQ(HistoryFile::default_path(), "/s/kvasir/history");
  set("XDG_STATE_HOME", "relative");
  EXPECT_EQ(HistoryFile::default_path(), "/h/.local/state/kvasir/history");
}

}  // namespace
}  // namespace kvasir::cli::history_file_test
