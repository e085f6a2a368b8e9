#include "io/safetensors_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/testing/safetensors_file.h"

namespace kvasir::io::safetensors_set_test {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  Folder() : folder_(fs::path(testing::TempDir()) / ("safetensors_set_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Folder() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // Two shards with a tensor each, and their index.
  void write_shards() const {
    write("model-00001-of-00002.safetensors", f32_safetensors({{"a", {2}}}));
    write("model-00002-of-00002.safetensors", f32_safetensors({{"b", {3}}}));
    write("model.safetensors.index.json", R"({"weight_map":{"a":"model-00001-of-00002.safetensors",
                                                            "b":"model-00002-of-00002.safetensors"}})");
  }
  // The message without the folder at its beginning.
  std::string error() const {
    const auto set = SafetensorsSet::open(folder_.string());
    if (set) return "";
    EXPECT_EQ(set.error().kind, ErrorKind::kBadFile);
    const std::string& message = set.error().message;
    return message.starts_with(folder_.string()) ? message.substr(folder_.string().size()) : message;
  }

  fs::path folder_;
};

TEST_F(Folder, ReadsOneFileOrTheShardsOfTheIndex) {
  write("model.safetensors", f32_safetensors({{"a", {2}}}));
  EXPECT_EQ(SafetensorsSet::open(folder_.string())->tensors().size(), 1u);
  write_shards();
  write("consolidated.safetensors", "not looked at");
  const auto set = SafetensorsSet::open(folder_.string());
  ASSERT_TRUE(set) << set.error().message;
  ASSERT_EQ(set->tensors().size(), 2u);
  EXPECT_EQ(set->tensors()[1].name, "b");
}

TEST_F(Folder, NamesAMissingShard) {
  write_shards();
  fs::remove(folder_ / "model-00002-of-00002.safetensors");
  EXPECT_EQ(error(), ": model-00002-of-00002.safetensors is missing, which model.safetensors.index.json names; is the "
                     "download incomplete?");
}

TEST_F(Folder, RefusesAShardOfAnotherSet) {
  write_shards();
  write("model-00003-of-00003.safetensors", f32_safetensors({{"c", {1}}}));
  EXPECT_EQ(error(), ": has model-00003-of-00003.safetensors, which model.safetensors.index.json does not name; remove "
                     "the one that is not of this model");
}

TEST_F(Folder, RefusesShardsWithoutAnIndex) {
  write_shards();
  fs::remove(folder_ / "model.safetensors.index.json");
  EXPECT_EQ(error(), ": has model-00001-of-00002.safetensors but no model.safetensors.index.json; is the download "
                     "incomplete?");
  write("model.safetensors", f32_safetensors({{"a", {2}}}));
  EXPECT_EQ(error(), ": has model-00001-of-00002.safetensors beside model.safetensors, and no index that names it");
}

TEST_F(Folder, RefusesTensorsThatAreNotWhereTheIndexSays) {
  write_shards();
  write("model-00002-of-00002.safetensors", f32_safetensors({{"c", {3}}}));
  EXPECT_EQ(error(), "/model-00002-of-00002.safetensors: has the tensor c, which model.safetensors.index.json places in "
                     "no or in another file");
  write("model-00002-of-00002.safetensors", f32_safetensors({}));
  EXPECT_EQ(error(), "/model-00002-of-00002.safetensors: lacks the tensor b, which model.safetensors.index.json places "
                     "there");
}

TEST_F(Folder, RefusesPickleFilesAndPointsToGguf) {
  EXPECT_EQ(error(), ": has no model.safetensors");
  write("pytorch_model.bin", "");
  EXPECT_EQ(error(), ": pytorch_model.bin is a pickle file, which may run code when it is read; only safetensors and "
                     "GGUF files are");
  write("a.gguf", "");
  EXPECT_EQ(error(), ": has no model.safetensors; did you mean the file a.gguf?");
}

TEST(SafetensorsIndex, IsRefusedWhenItIsNotAMapToFilesOfTheFolder) {
  const auto error = [](std::string_view text) {
    const auto map = parse_safetensors_index(text, "i");
    return map ? std::string() : map.error().message;
  };
  EXPECT_EQ(error("{}"), "i: has no object weight_map");
  EXPECT_EQ(error(R"({"weight_map":{}})"), "i: weight_map names no tensor");
  EXPECT_EQ(error(R"({"weight_map":{"a":"../x.safetensors"}})"), "i: weight_map: tensor a has no plain file name");
  EXPECT_EQ(error(R"({"weight_map":{"a":1}})"), "i: weight_map: tensor a has no plain file name");
  EXPECT_EQ(error(R"({"weight_map":{"a":"x.bin"}})"), "i: weight_map: x.bin of tensor a is no safetensors file");
  EXPECT_EQ(error(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"),
            "i: weight_map: tensor a appears twice");
  EXPECT_EQ(error(R"({"weight_map":{"a":"x.safetensors"}})"), "");
}

}  // namespace
}  // namespace kvasir::io::safetensors_set_test
