#include "store/hub/hub_selection.h"

#include <gtest/gtest.h>

namespace kvasir::store::hub_selection_test {
namespace {

using Paths = std::vector<std::string>;

HubName name_of(const std::string& text) {
  auto name = HubName::parse(text);
  EXPECT_TRUE(name) << name.error().message;
  return *name;
}

std::string chosen(const std::string& name, const Paths& paths) {
  const auto selection = select_files(name_of(name), paths);
  return selection ? selection->model_path : "error: " + selection.error().message;
}

TEST(HubSelection, AQuantizationIsAWordOfTheName) {
  const Paths paths = {"m-IQ4_XS.gguf", "m-Q4_K.gguf",       "m-Q4_K_M.gguf",
                       "m-q8_0.gguf",   "m-UD-Q4_K_XL.gguf", "m.BF16.gguf"};
  EXPECT_EQ(chosen("hf:o/m", paths), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen("hf:o/m:Q4_K", paths), "m-Q4_K.gguf");
  EXPECT_EQ(chosen("hf:o/m:Q8_0", paths), "m-q8_0.gguf");
  EXPECT_EQ(chosen("hf:o/m:bf16", paths), "m.BF16.gguf");
  EXPECT_EQ(chosen("hf:o/m:4_K", paths).find("error: hf:o/m: no file is called '4_K'"), 0U);
}

TEST(HubSelection, ASplitSetIsOneModel) {
  const Paths paths = {"a/m-Q8_0-00001-of-00002.gguf", "a/m-Q8_0-00002-of-00002.gguf", "mmproj-f16.gguf",
                       "imatrix.gguf"};
  EXPECT_EQ(gguf_models(paths), Paths{paths[0]});
  EXPECT_EQ(select_files(name_of("hf:o/m"), paths)->paths, (Paths{paths[0], paths[1]}));
  EXPECT_EQ(chosen("hf:o/m:" + paths[1], paths), paths[0]);
  EXPECT_EQ(chosen("hf:o/m", {paths[0]}),
            "error: hf:o/m: a/m-Q8_0-00001-of-00002.gguf belongs to a set of 2 files, and "
            "a/m-Q8_0-00002-of-00002.gguf "
            "is missing");
  EXPECT_EQ(split_set_of("m-00003-of-00002.gguf"), Paths{"m-00003-of-00002.gguf"});
  EXPECT_EQ(split_set_of("-00001-of-00001.gguf"), Paths{"-00001-of-00001.gguf"});
}

TEST(HubSelection, TheIndexDecidesOnTheShards) {
  const Paths paths = {"config.json",         "model.safetensors.index.json", "model-1.safetensors",
                       "model-2.safetensors", "consolidated.safetensors",     "pytorch_model.bin"};
  const HubName name = name_of("hf:o/m");
  auto selection = select_files(name, paths);
  ASSERT_TRUE(selection) << selection.error().message;
  ASSERT_TRUE(add_shards(
      name,
      R"({"weight_map":{"a":"model-2.safetensors","b":"model-1.safetensors","c":"model-1.safetensors"}})",
      paths, *selection));
  EXPECT_EQ(selection->paths, (Paths{"model.safetensors.index.json", "model-1.safetensors",
                                     "model-2.safetensors", "config.json"}));
  for (const char* index : {"", "[]", "{}", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})",
                            R"({"weight_map":{"a":"x.bin"}})", R"({"weight_map":{"a":"../x.safetensors"}})",
                            R"({"weight_map":{"a":"no.safetensors"}})"}) {
    EXPECT_FALSE(add_shards(name, index, paths, *selection)) << index;
  }
}

}  // namespace
}  // namespace kvasir::store::hub_selection_test
