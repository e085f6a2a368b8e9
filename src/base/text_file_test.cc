#include "base/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <string>

namespace kvasir::text_file_test {
namespace {

class TextFile : public testing::Test {
 protected:
  TextFile()
      : folder_(std::filesystem::path(testing::TempDir()) / ("kvasir-text-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TextFile() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "notes.txt").string(); }
  auto num_files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

  std::filesystem::path folder_;
};

TEST_F(TextFile, IsNoPipeAndNoFolder) {
  EXPECT_EQ(check_readable(path()).error().message, path() + ": cannot be read: No such file or directory");
  EXPECT_EQ(check_readable(folder_.string()).error().message,
            folder_.string() + ": cannot be read: it is a folder");
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(check_readable(path()).error().message, path() + ": cannot be read: it is no regular file");
  std::filesystem::remove(path());
  ASSERT_TRUE(replace_text_file(path(), "text"));
  EXPECT_TRUE(check_readable(path()));
}

TEST_F(TextFile, IsReplacedAndLeavesNoDraft) {
  ASSERT_TRUE(can_replace_text_file(path()));
  EXPECT_EQ(num_files(), 0);
  ASSERT_TRUE(replace_text_file(path(), "one"));
  ASSERT_TRUE(can_replace_text_file(path()));
  ASSERT_TRUE(replace_text_file(path(), "two", 0600));
  EXPECT_EQ(read_text_file(path()), "two");
  EXPECT_EQ(num_files(), 1);
  struct stat about{};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(TextFile, IsReplacedWhereLinksLeadTo) {
  const std::string target = (folder_ / "target.txt").string();
  std::filesystem::create_symlink("target.txt", folder_ / "relative");
  std::filesystem::create_symlink(folder_ / "relative", path());
  ASSERT_TRUE(replace_text_file(path(), "one"));  // a link that leads to nothing yet
  EXPECT_EQ(read_text_file(target), "one");
  ASSERT_TRUE(replace_text_file(path(), "two"));
  EXPECT_EQ(read_text_file(target), "two");
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "relative"));
}

TEST_F(TextFile, IsNotReplacedUnderOneOfSeveralNames) {
  ASSERT_TRUE(replace_text_file(path(), "one"));
  const std::string other = (folder_ / "other.txt").string();
  std::filesystem::create_hard_link(path(), other);
  for (const Status& status : {replace_text_file(other, "two"), can_replace_text_file(other)}) {
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("hard links"), std::string::npos) << status.error().message;
  }
  EXPECT_EQ(read_text_file(path()), "one");
  std::filesystem::remove(other);
  EXPECT_TRUE(replace_text_file(path(), "two"));
}

TEST_F(TextFile, ReplacesNoPipe) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  for (const Status& status : {replace_text_file(path(), "text"), can_replace_text_file(path())}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, path() + ": cannot be written: it is no regular file");
  }
}

TEST_F(TextFile, ThatCannotBeReplacedStaysAndIsNamed) {
  std::filesystem::create_directory(path());
  for (const Status& status : {replace_text_file(path(), "text"), can_replace_text_file(path())}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kMachine);
    EXPECT_EQ(status.error().message, path() + ": cannot be written: Is a directory");
  }
  EXPECT_EQ(num_files(), 1);
  EXPECT_FALSE(replace_text_file(path() + "/none/notes.txt", "text"));
}

}  // namespace
}  // namespace kvasir::text_file_test
