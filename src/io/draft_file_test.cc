#include "io/draft_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "io/gguf_entries.h"
#include "io/gguf_writer.h"

namespace kvasir::io::draft_file_test {
namespace {

class DraftFileOnDisk : public testing::Test {
 protected:
  ~DraftFileOnDisk() override { std::filesystem::remove(path_); }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The message of the same file with its `begin` replaced, or nothing where it is read.
  std::string message_with(const std::string& from, const std::string& to) const {
    std::string changed = bytes();
    const std::size_t place = changed.find(from);
    EXPECT_NE(place, std::string::npos);
    EXPECT_EQ(from.size(), to.size());
    changed.replace(place, from.size(), to);
    std::ofstream(path_, std::ios::binary) << changed;
    const auto read = read_draft_file(path_);
    return read ? std::string() : read.error().message.substr(path_.size() + 2);
  }

  // Tests of one suite run beside each other, each in a process.
  const std::string path_ = draft_file_path(testing::TempDir() + "kvasir-draft-" + std::to_string(::getpid()) + ".gguf");
  const DraftFile file_ = {.base_name = "tiny",
                           .base_fingerprint = "12-ab",
                           .base_tokens = 0xFEDCBA9876543210,
                           .vocab_size = 100,
                           .trained_on = "nothing much",
                           .order = 2,
                           .words = {0xFFFFFFFF, 7 << 8 | 3, 0, 0},
                           .acceptance = {0.5, 0.25},
                           .held_out_prompts = {{1, 2, 3}, {99}},
                           .held_out_tokens = 64};
};

TEST_F(DraftFileOnDisk, IsReadAsItWasWritten) {
  ASSERT_TRUE(write_draft_file(path_, file_));
  const auto read = read_draft_file(path_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->base_name, "tiny");
  EXPECT_EQ(read->base_fingerprint, "12-ab");
  EXPECT_EQ(read->base_tokens, file_.base_tokens);
  EXPECT_EQ(read->vocab_size, 100);
  EXPECT_EQ(read->trained_on, "nothing much");
  EXPECT_EQ(read->order, 2);
  EXPECT_EQ(read->words, file_.words);
  EXPECT_EQ(read->acceptance, file_.acceptance);
  EXPECT_EQ(read->held_out_prompts, file_.held_out_prompts);
  EXPECT_EQ(read->held_out_tokens, 64);
}

TEST_F(DraftFileOnDisk, AShorterOneReplacesALongerOne) {
  DraftFile longer = file_;
  longer.words.resize(1000);
  ASSERT_TRUE(write_draft_file(path_, longer));
  ASSERT_TRUE(write_draft_file(path_, file_));
  EXPECT_LT(std::filesystem::file_size(path_), 1500U);
  EXPECT_TRUE(read_draft_file(path_));
}

TEST_F(DraftFileOnDisk, AModelIsNone) {
  const std::vector<GgufEntry> entries = {string_entry("general.architecture", "llama")};
  const GgufLayout layout(entries, {});
  ASSERT_TRUE(GgufWriter::open(path_, layout)->finish());
  const auto read = read_draft_file(path_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kBadFile);
  EXPECT_EQ(read.error().message, path_ + ": no draft file: its architecture is llama");
}

TEST_F(DraftFileOnDisk, WhatIsWrongIsNamed) {
  ASSERT_TRUE(write_draft_file(path_, file_));
  EXPECT_EQ(message_with("ngram", "eagle"), "draft.kind: eagle is not known, ngram is");
  ASSERT_TRUE(write_draft_file(path_, file_));
  EXPECT_EQ(message_with("draft.trained_on", "draft.trained_in"), "metadata: draft.trained_on is missing");
  ASSERT_TRUE(write_draft_file(path_, file_));
  EXPECT_EQ(message_with(std::string("\x63\0\0\0", 4), std::string("\x64\0\0\0", 4)),
            "draft.held_out.tokens: 100 is not between 0 and 99");
}

TEST_F(DraftFileOnDisk, EveryCutIsRefused) {
  ASSERT_TRUE(write_draft_file(path_, file_));
  const std::string whole = bytes();
  const std::size_t table = whole.rfind("draft.table");
  for (std::size_t size = 0; size < table + 20; ++size) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, size);
    EXPECT_FALSE(read_draft_file(path_)) << size;
  }
}

}  // namespace
}  // namespace kvasir::io::draft_file_test
