#include "io/sentence_modules.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace kvasir::io::sentence_modules_test {
namespace {

namespace fs = std::filesystem;

class Modules : public testing::Test {
 protected:
  Modules() : folder_(fs::path(testing::TempDir()) / ("sentence_modules_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "1_Pooling");
    fs::create_directories(folder_ / "2_Dense");
    write("modules.json", R"([{"path":"","type":"sentence_transformers.models.Transformer"},
                              {"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
                              {"path":"2_Dense","type":"sentence_transformers.models.Dense"},
                              {"path":"3_Normalize","type":"sentence_transformers.models.Normalize"}])");
    write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens":true,"pooling_mode_cls_token":false})");
    write("2_Dense/config.json", R"({"in_features":8,"out_features":32,"bias":false,
                                     "activation_function":"torch.nn.modules.linear.Identity"})");
  }
  ~Modules() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string error() const {
    const auto modules = read_sentence_modules(folder_.string());
    if (modules) return "";
    return modules.error().message.substr(folder_.string().size());
  }

  fs::path folder_;
};

TEST_F(Modules, AreReadInTheirOrder) {
  write("config_sentence_transformers.json", R"({"prompts":{"query":"query: "},"default_prompt_name":"query"})");
  const auto modules = read_sentence_modules(folder_.string());
  ASSERT_TRUE(modules) << modules.error().message;
  EXPECT_EQ(modules->pooling, PoolingKind::kMean);
  ASSERT_EQ(modules->dense.size(), 1u);
  EXPECT_EQ(modules->dense[0].out_features, 32);
  EXPECT_TRUE(modules->normalizes);
  EXPECT_EQ(modules->prompts.at("query"), "query: ");
  EXPECT_EQ(modules->default_prompt_name, "query");
}

TEST_F(Modules, HaveNoPromptsThatTheMeanPassesOver) {
  write("config_sentence_transformers.json", R"({"prompts":{"query":"query: "},"default_prompt_name":"query"})");
  write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens":true,"include_prompt":false})");
  const auto modules = read_sentence_modules(folder_.string());
  ASSERT_TRUE(modules) << modules.error().message;
  EXPECT_TRUE(modules->prompts.empty());
  EXPECT_EQ(modules->default_prompt_name, "");
}

TEST_F(Modules, AreNoneInOtherFolders) {
  fs::remove(folder_ / "modules.json");
  const auto modules = read_sentence_modules(folder_.string());
  ASSERT_TRUE(modules);
  EXPECT_FALSE(modules->pooling);
}

TEST_F(Modules, AreRefusedWhenTheyAreNotComputed) {
  write("1_Pooling/config.json", R"({"pooling_mode_max_tokens":true})");
  EXPECT_EQ(error(), "/1_Pooling/config.json: pooling_mode_max_tokens is not computed here, or not beside another");
  write("1_Pooling/config.json", R"({"pooling_mode_lasttoken":true})");
  write("2_Dense/config.json", R"({"in_features":8,"out_features":32,"bias":true})");
  EXPECT_EQ(error(), "/2_Dense/config.json: a dense layer with a bias is not computed here");
  write("2_Dense/config.json", R"({"in_features":0})");
  EXPECT_EQ(error(), "/2_Dense/config.json: in_features must be between 1 and 1048576");
  write("modules.json", R"([{"path":"x","type":"a.WordEmbeddings"}])");
  EXPECT_EQ(error(), "/modules.json: modules of the type a.WordEmbeddings are not read");
  write("modules.json", R"([{"path":"../x","type":"a.Pooling"}])");
  EXPECT_EQ(error(), "/modules.json: the path ../x is no folder in this one");
}

}  // namespace
}  // namespace kvasir::io::sentence_modules_test
