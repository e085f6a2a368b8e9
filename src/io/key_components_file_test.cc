// What is kept of a model's keys comes back, and files that are none are named.
#include "io/key_components_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

namespace kvasir::io::key_components_file_test {
namespace {

KeyComponentsFile two_heads() {
  KeyComponentsFile file{.model = "12-ab", .head_dim = 4, .heads = {}};
  file.heads.push_back({.mean = {1, 2, 3, 4}, .directions = {1, 0, 0, 0, 0, 0.5f, 0.5f, 0}, .deviations = {3, 0.25f}, .bits = {6, 2}});
  file.heads.push_back({.mean = {0, 0, 0, -1}, .directions = {0, 0, 0, 1}, .deviations = {2}, .bits = {5}});
  return file;
}

class KeyComponentsFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  std::string error() const {
    const auto read = read_key_components(path_);
    return read ? "none" : read.error().message;
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string path_ = testing::TempDir() + "kvasir-keys-test.kv.keys";
};

TEST_F(KeyComponentsFiles, ComeBackAsTheyWere) {
  const KeyComponentsFile file = two_heads();
  ASSERT_TRUE(write_key_components(path_, file));
  const auto read = read_key_components(path_);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->model, file.model);
  EXPECT_EQ((*read)->head_dim, 4);
  ASSERT_EQ((*read)->heads.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const HeadKeys &found = (*read)->heads[i], &wanted = file.heads[i];
    EXPECT_EQ(found.mean, wanted.mean);
    EXPECT_EQ(found.directions, wanted.directions);
    EXPECT_EQ(found.deviations, wanted.deviations);
    EXPECT_EQ(found.bits, wanted.bits);
  }
}

TEST_F(KeyComponentsFiles, MayBeMissing) {
  const auto read = read_key_components(path_);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->has_value());
  EXPECT_EQ(key_components_path("folder/"), "folder.kv.keys");
}

TEST_F(KeyComponentsFiles, ThatAreNoneAreNamed) {
  write("GGUF");
  EXPECT_NE(error().find("kvasir-keys-test"), std::string::npos) << error();
  ASSERT_TRUE(write_key_components(path_, two_heads()));
  const std::string whole = bytes();
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{40}}) {
    write(whole.substr(0, size));
    EXPECT_NE(error(), "none") << size;
  }
  std::string other = whole;
  other.replace(other.find("keys.bits"), 9, "keys.bitz");
  write(other);
  EXPECT_NE(error().find("it has no tensor keys.bits; kvasir calibrate-kv writes it anew"), std::string::npos) << error();
  KeyComponentsFile many_bits = two_heads();
  many_bits.heads[0].bits[0] = 7;
  ASSERT_TRUE(write_key_components(path_, many_bits));
  EXPECT_NE(error().find("a number of keys.bits is not from 0 to 6"), std::string::npos) << error();
}

}  // namespace
}  // namespace kvasir::io::key_components_file_test
