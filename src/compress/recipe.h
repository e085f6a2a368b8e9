// Which type each tensor of a quantised file gets, by the names that llama.cpp gives its recipes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "quant/dtype.h"
#include "tensor/tensor_view.h"

namespace kvasir::compress {

// A recipe gives the same types as llama-quantize does for this name.
struct Recipe {
  std::string_view name;
  std::uint32_t file_type = 0;  // general.file_type
  DType base = DType::kF32;     // of the tensors that no rule names

  bool is_float() const { return base == DType::kF32 || base == DType::kF16 || base == DType::kBF16; }
};

// Case does not matter; "Q4_K" is "Q4_K_M", and so on. Error (kUsage): no recipe is called so, or the type has no encoder;
// it names those that there are.
Result<Recipe> recipe_named(std::string_view name);
std::vector<std::string_view> recipe_names();
// general.file_type of a file that is mostly of one type.
std::uint32_t file_type_of(DType type);

// What rules depend on besides a tensor's name.
struct RecipeModel {
  std::string architecture;
  std::int32_t num_layers = 0;
  std::int32_t num_heads_per_kv_head = 1;
  std::int32_t num_experts = 0;
  bool is_tied = true;         // no output.weight: the embedding is the head too
  bool has_importance = false;  // statistics of inputs were given
};

struct TypeChoice {
  DType type = DType::kF32;
  DType wanted = DType::kF32;  // by the recipe; another one where the rows' length does not fit it
  bool is_fallback() const { return type != wanted; }
};

// Whether a recipe touches the tensor at all: matrices, but for routers, norms, positions and small ones.
bool is_quantized_by_recipes(const TensorView& tensor);

// In the order of `tensors`; those that no recipe touches keep their type.
std::vector<TypeChoice> types_of(const Recipe& recipe, const RecipeModel& model, std::vector<TensorView> tensors);

// `wanted`, or a type whose blocks divide rows of that length.
TypeChoice fitting(DType wanted, std::int64_t row_length);

}  // namespace kvasir::compress
