#include "compress/recipe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace kvasir::compress::recipe_test {
namespace {

TensorView matrix(const std::string& name, std::int64_t length, std::int64_t rows, std::int64_t experts = 1) {
  return {.name = name, .rank = experts > 1 ? 3 : 2, .shape = {length, rows, experts, 1}};
}

DType type_named(const std::string& name) {
  for (const DTypeInfo& info : kDTypeInfos) {
    if (info.name == name) return info.dtype;
  }
  ADD_FAILURE() << "no type " << name;
  return DType::kF32;
}

// What llama-quantize chose for models of several shapes (scripts/make_recipe_cases.py). A line: a model ("M" and its
// facts), a recipe ("R"), or a tensor with its shape and type.
TEST(Recipes, ChooseTheTypesThatLlamaQuantizeChooses) {
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/cases/recipes.txt");
  ASSERT_TRUE(file);
  RecipeModel model;
  std::string recipe, line;
  std::vector<TensorView> tensors;
  std::vector<DType> expected;
  std::size_t num_compared = 0;
  const auto check = [&] {
    if (tensors.empty()) return;
    const auto found = recipe_named(recipe);
    ASSERT_TRUE(found) << recipe;
    const std::vector<TypeChoice> choices = types_of(*found, model, tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ(name_of(choices[i].type), name_of(expected[i]))
          << model.architecture << " " << recipe << (model.has_importance ? " with importance " : " ") << tensors[i].name;
      ++num_compared;
    }
    tensors.clear();
    expected.clear();
  };
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "M") {
      check();
      words >> model.architecture >> model.num_layers >> model.num_heads_per_kv_head >> model.num_experts >> model.is_tied;
    } else if (kind == "R") {
      check();
      words >> recipe >> model.has_importance;
    } else if (kind == "T") {
      std::string name, type;
      std::int64_t length = 0, rows = 0, experts = 0;
      words >> name >> length >> rows >> experts >> type;
      tensors.push_back(matrix(name, length, rows, experts));
      expected.push_back(type_named(type));
    }
  }
  check();
  EXPECT_GT(num_compared, 1000u);
}

TEST(Recipes, AreKnownByTheirNames) {
  EXPECT_EQ(recipe_named("q4_k_m")->base, DType::kQ4_K);
  EXPECT_EQ(recipe_named("Q4_K")->file_type, 15u);
  const auto unknown = recipe_named("Q9");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
  EXPECT_NE(unknown.error().message.find("Q4_K_M"), std::string::npos);
}

TEST(Recipes, TypesFitRows) {
  EXPECT_EQ(fitting(DType::kQ4_K, 512).type, DType::kQ4_K);
  EXPECT_EQ(fitting(DType::kQ4_K, 576).type, DType::kQ5_0);
  EXPECT_EQ(fitting(DType::kQ6_K, 576).type, DType::kQ8_0);
  EXPECT_EQ(fitting(DType::kQ2_K, 576).type, DType::kQ4_0);
  EXPECT_EQ(fitting(DType::kQ4_0, 100).type, DType::kF16);
  EXPECT_TRUE(fitting(DType::kQ3_K, 640).is_fallback());
}

}  // namespace
}  // namespace kvasir::compress::recipe_test
