#include "compress/journal.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace kvasir::compress::journal_test {
namespace {

std::string new_path(const char* name) {
  const std::string path = ::testing::TempDir() + "kvasir-journal-" + name;
  std::filesystem::remove(path);
  return path;
}

TEST(Journal, RemembersWhatIsFinished) {
  const std::string path = new_path("remembers");
  {
    auto journal = Journal::open(path, "source a");
    ASSERT_TRUE(journal);
    EXPECT_TRUE(journal->finished().empty());
    EXPECT_FALSE(journal->began_anew());
    ASSERT_TRUE(journal->add("blk.0.attn_q.weight", {.sha256 = "abc", .error = 0.25}));
  }
  const auto again = Journal::open(path, "source a");
  ASSERT_TRUE(again);
  ASSERT_EQ(again->finished().size(), 1u);
  EXPECT_EQ(again->finished().at("blk.0.attn_q.weight").sha256, "abc");
  EXPECT_EQ(again->finished().at("blk.0.attn_q.weight").error, 0.25);
}

TEST(Journal, BeginsAnewForAnotherRun) {
  const std::string path = new_path("anew");
  ASSERT_TRUE(Journal::open(path, "source a")->add("t", {.sha256 = "abc"}));
  const auto other = Journal::open(path, "source b");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->began_anew());
  EXPECT_TRUE(other->finished().empty());
}

TEST(Journal, ForgetsALineThatWasCut) {
  const std::string path = new_path("cut");
  ASSERT_TRUE(Journal::open(path, "source a")->add("whole", {.sha256 = "abc"}));
  std::ofstream(path, std::ios::app) << "def 0.5 ha";
  {
    auto journal = Journal::open(path, "source a");
    ASSERT_TRUE(journal);
    EXPECT_EQ(journal->finished().size(), 1u);
    ASSERT_TRUE(journal->add("half", {.sha256 = "123"}));
  }
  EXPECT_EQ(Journal::open(path, "source a")->finished().at("half").sha256, "123");
}

TEST(Journal, LeavesAFileThatIsNoneAlone) {
  const std::string path = new_path("foreign");
  std::ofstream(path) << "weights";
  EXPECT_FALSE(Journal::open(path, "source a"));
  std::ifstream file(path);
  std::string content;
  std::getline(file, content);
  EXPECT_EQ(content, "weights");
}

TEST(Journal, SaysWhereItCannotWrite) {
  const auto journal = Journal::open("/nowhere/at/all", "a");
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().kind, ErrorKind::kMachine);
}

}  // namespace
}  // namespace kvasir::compress::journal_test
