#include "store/hub/partial_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "store/hub/git_blob_hash.h"

namespace kvasir::store::partial_file_test {
namespace {

namespace fs = std::filesystem;

class Partial : public testing::Test {
 protected:
  Partial() : folder_(fs::path(testing::TempDir()) / ("partial_test_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Partial() override { fs::remove_all(folder_); }

  PartialFile open(const std::string& commit = std::string(40, 'c'), std::int64_t piece_bytes = 4) const {
    auto file = PartialFile::open(folder_, {commit, "etag", 10}, piece_bytes);
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }
  static void write(PartialFile& file, std::int32_t piece, std::string_view text) {
    const Status status = file.write(piece, std::as_bytes(std::span(text)));
    EXPECT_TRUE(status) << status.error().message;
  }
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(Partial, GoesOnInAnotherProcess) {
  {
    PartialFile file = open();
    EXPECT_EQ(file.num_pieces(), 3);
    EXPECT_EQ(fs::file_size(file.path()), 10U);
    write(file, 1, "45");
    write(file, 2, "89");
  }
  PartialFile file = open();
  EXPECT_TRUE(file.was_resumed());
  EXPECT_EQ(file.piece_done(0), 0);
  EXPECT_EQ(file.piece_done(1), 2);
  EXPECT_EQ(file.bytes_done(), 4);
  write(file, 0, "0123");
  write(file, 1, "67");
  EXPECT_TRUE(file.is_whole());
  ASSERT_TRUE(file.publish(folder_ / "whole"));
  std::ifstream whole(folder_ / "whole");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(whole), {}), "0123456789");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(Partial, AnotherCommitPieceSizeOrDamageStartsAnew) {
  for (const auto& [commit, piece_bytes] : {std::pair(std::string(40, 'd'), 4), {std::string(40, 'c'), 5}}) {
    {
      PartialFile file = open();
      write(file, 0, "0123");
    }
    EXPECT_EQ(open(commit, piece_bytes).bytes_done(), 0);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  {
    PartialFile file = open();
    write(file, 0, "0123");
    fs::resize_file(file.path(), 9);
  }
  EXPECT_EQ(open().bytes_done(), 0);
  EXPECT_EQ(num_files(), 2U);  // the damaged ones are gone
}

TEST_F(Partial, AsOnePieceForgetsWhatWasThere) {
  PartialFile file = open();
  write(file, 1, "4567");
  ASSERT_TRUE(file.start_anew(true));
  EXPECT_EQ(file.num_pieces(), 1);
  EXPECT_EQ(file.bytes_done(), 0);
  write(file, 0, "0123456789");
  EXPECT_TRUE(file.is_whole());
}

TEST_F(Partial, GitNamesItsContentByAHash) {
  std::ofstream(folder_ / "x") << "hello\n";
  EXPECT_EQ(*git_blob_hash(folder_ / "x", [](std::int64_t) { return true; }),
            "ce013625030ba8dba906f756967f9e9ca394464a");
  EXPECT_EQ(git_blob_hash(folder_ / "x", [](std::int64_t) { return false; }).error().kind,
            ErrorKind::kCancelled);
}

}  // namespace
}  // namespace kvasir::store::partial_file_test
