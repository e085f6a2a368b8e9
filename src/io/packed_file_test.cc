#include "io/packed_file.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/packed_copy.h"

namespace kvasir::io::packed_file_test {
namespace {

namespace fs = std::filesystem;

class PackedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("packed_file_test." + std::to_string(::getpid()) + "." +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::vector<std::byte> matrix(std::size_t size, int seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
    return bytes;
  }
  std::string path() const { return (folder_ / "m.packed").native(); }

  void write() const {
    auto writer = PackedFileWriter::create(path(), {.identity = "a model", .model_path = "/m.gguf"}, 100'000);
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE(writer->add("small", matrix(10, 1)));
    ASSERT_TRUE(writer->add("large", matrix(70'000, 2)));
    ASSERT_TRUE(writer->finish());
  }
  // One byte more or less of the file at a place.
  void flip(std::streamoff at) const {
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
  }
  std::string problem(std::string_view identity = "a model") const {
    const auto file = PackedFile::open(path(), identity);
    return file ? "" : file.error().message;
  }

  fs::path folder_;
};

TEST_F(PackedFileTest, GivesBackWhatWasAdded) {
  write();
  const auto file = PackedFile::open(path(), "a model");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->num_matrices(), 2);
  for (const auto& [key, size, seed] : {std::tuple("small", 10u, 1), std::tuple("large", 70'000u, 2)}) {
    const std::span<const std::byte> bytes = file->find(key);
    EXPECT_EQ(std::vector(bytes.begin(), bytes.end()), matrix(size, seed));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096, 0u);
  }
  EXPECT_TRUE(file->find("other").empty());
  EXPECT_TRUE(file->verify());
  EXPECT_EQ(PackedFile::read_label(path())->model_path, "/m.gguf");
}

TEST_F(PackedFileTest, RefusesAnotherIdentity) {
  write();
  EXPECT_EQ(problem("another"), "was made of another version of the model");
}

TEST_F(PackedFileTest, NoticesAnyDamageToHeaderAndTable) {
  write();
  const auto size = static_cast<std::streamoff>(fs::file_size(path()));
  for (const std::streamoff at : {std::streamoff{0}, std::streamoff{9}, std::streamoff{40}, std::streamoff{4095}, size - 1, size - 100}) {
    flip(at);
    EXPECT_NE(problem(), "") << at;
    flip(at);
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(PackedFileTest, NoticesAFileThatIsShortOrLong) {
  write();
  const auto size = fs::file_size(path());
  fs::resize_file(path(), size - 1);
  EXPECT_NE(problem(), "");
  fs::resize_file(path(), size + 1);
  EXPECT_NE(problem(), "");
}

// The begin, middle and end of a matrix are checked when it is opened; verify() reads all of it.
TEST_F(PackedFileTest, SamplesEveryMatrixAndVerifiesAll) {
  write();
  const std::streamoff large = 2 * 4096;
  flip(large + 35'000);
  EXPECT_EQ(problem(), "has damaged weights (large)");
  flip(large + 35'000);
  flip(large + 10'000);
  const auto file = PackedFile::open(path(), "a model");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->verify().error().message, "has damaged weights (large)");
}

TEST_F(PackedFileTest, LeavesNothingUnlessItIsFinished) {
  {
    auto writer = PackedFileWriter::create(path(), {.identity = "a model"}, 100);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add("small", matrix(10, 1)));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(PackedFileTest, RefusesWhatTheDiskHasNoRoomFor) {
  const auto writer = PackedFileWriter::create(path(), {.identity = "a model"}, std::int64_t{1} << 60);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::kMachine);
  EXPECT_NE(writer.error().message.find("1.00 EiB"), std::string::npos) << writer.error().message;
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(PackedFileTest, IsWrittenByOneProcessAtATime) {
  fs::create_directories(folder_);
  const int other = ::open((path() + ".draft").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_FALSE(PackedFileWriter::create(path(), {.identity = "a model"}, 100));
  ::close(other);
  EXPECT_TRUE(PackedFileWriter::create(path(), {.identity = "a model"}, 100));
}

TEST_F(PackedFileTest, HashesDependOnEveryByteAndOnTheLength) {
  std::vector<std::byte> bytes = matrix(100, 3);
  const std::uint64_t hash = hash_bytes(bytes);
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x80};
    EXPECT_NE(hash_bytes(bytes), hash);
    byte ^= std::byte{0x80};
  }
  bytes.push_back(std::byte{0});
  EXPECT_NE(hash_bytes(bytes), hash);
}

class PackedCopyTest : public PackedFileTest {
 protected:
  PackedCopyName name(std::string settings = "exact", std::string state = "1") const {
    return {.directory = folder_.native(),
            .fingerprint = "100-abc",
            .settings = std::move(settings),
            .state = std::move(state),
            .model_path = "/"};
  }
  static void fill(PackedCopy& copy) {
    copy.begin_writing(100);
    copy.add("small", matrix(10, 1));
    copy.finish();
  }
};

TEST_F(PackedCopyTest, IsWrittenOnceAndThenRead) {
  {
    PackedCopy first = PackedCopy::open(name());
    EXPECT_TRUE(first.is_writable());
    fill(first);
    EXPECT_EQ(name_of(first.state()), "written");
  }
  const PackedCopy second = PackedCopy::open(name());
  EXPECT_EQ(name_of(second.state()), "hit");
  EXPECT_EQ(second.find("small").size(), 10u);
  EXPECT_TRUE(second.find("other").empty());
  EXPECT_TRUE(second.notices().empty());
}

TEST_F(PackedCopyTest, OfAnotherStateIsDroppedWithALine) {
  {
    PackedCopy first = PackedCopy::open(name());
    fill(first);
  }
  PackedCopy second = PackedCopy::open(name("exact", "2"));
  EXPECT_FALSE(second.is_hit());
  ASSERT_EQ(second.notices().size(), 1u);
  EXPECT_NE(second.notices().front().find("was made of another version of the model"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder_));
  fill(second);
  second = {};
  EXPECT_TRUE(PackedCopy::open(name("exact", "2")).is_hit());
}

TEST_F(PackedCopyTest, KeepsTwoOfAModelAndNoneWithoutAModel) {
  for (const char* settings : {"a", "b", "c"}) {
    PackedCopy copy = PackedCopy::open(name(settings));
    fill(copy);
  }
  EXPECT_EQ(packed_copies_of(folder_.native(), "100-abc").size(), 2u);
  EXPECT_TRUE(PackedCopy::open(name("c")).is_hit());
  PackedCopyName gone = name();
  gone.fingerprint = "200-abc";
  gone.model_path = "/no/such/model.gguf";
  {
    PackedCopy copy = PackedCopy::open(gone);
    fill(copy);
  }
  EXPECT_EQ(packed_copies_of(folder_.native(), "200-abc").size(), 1u);
  {
    PackedCopy copy = PackedCopy::open(name("d"));
    fill(copy);
  }
  EXPECT_TRUE(packed_copies_of(folder_.native(), "200-abc").empty());
}

TEST_F(PackedCopyTest, WithoutRoomIsALineAndNoMore) {
  PackedCopy copy = PackedCopy::open(name());
  copy.begin_writing(std::int64_t{1} << 60);
  copy.add("small", matrix(10, 1));
  copy.finish();
  EXPECT_EQ(name_of(copy.state()), "off");
  ASSERT_EQ(copy.notices().size(), 1u);
  EXPECT_TRUE(copy.notices().front().starts_with("no packed copy of the weights is kept: "));
}

TEST_F(PackedCopyTest, WithoutAFolderIsOff) {
  PackedCopy copy = PackedCopy::open({});
  EXPECT_FALSE(copy.is_writable());
  copy.add("small", matrix(10, 1));
  copy.finish();
  EXPECT_EQ(name_of(copy.state()), "off");
}

}  // namespace
}  // namespace kvasir::io::packed_file_test
