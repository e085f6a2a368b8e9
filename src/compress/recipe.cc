#include "compress/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include "base/printable.h"
#include "quant/fit/fitted_format.h"
#include "tensor/tensor_name.h"

namespace kvasir::compress {
namespace {

// The numbers of file types are llama.cpp's (include/llama.h).
constexpr auto kRecipes = std::to_array<Recipe>({
    {"F32", 0, DType::kF32},        {"F16", 1, DType::kF16},         {"BF16", 32, DType::kBF16},
    {"Q8_0", 7, DType::kQ8_0},      {"Q6_K", 18, DType::kQ6_K},      {"Q5_K_M", 17, DType::kQ5_K},
    {"Q5_K_S", 16, DType::kQ5_K},   {"Q5_1", 9, DType::kQ5_1},       {"Q5_0", 8, DType::kQ5_0},
    {"Q4_K_M", 15, DType::kQ4_K},   {"Q4_K_S", 14, DType::kQ4_K},    {"Q4_1", 3, DType::kQ4_1},
    {"Q4_0", 2, DType::kQ4_0},      {"IQ4_NL", 25, DType::kIQ4_NL},  {"IQ4_XS", 30, DType::kIQ4_XS},
    {"MXFP4_MOE", 38, DType::kMXFP4}, {"NVFP4", 39, DType::kNVFP4},  {"Q3_K_L", 13, DType::kQ3_K},
    {"Q3_K_M", 12, DType::kQ3_K},   {"Q3_K_S", 11, DType::kQ3_K},    {"Q2_K", 10, DType::kQ2_K},
    {"Q2_K_S", 21, DType::kQ2_K},   {"Q2_0", 41, DType::kQ2_0},      {"TQ2_0", 37, DType::kTQ2_0},
    {"TQ1_0", 36, DType::kTQ1_0},   {"Q1_0", 40, DType::kQ1_0},      {"IQ3_S", 26, DType::kIQ3_S},
    {"IQ3_M", 27, DType::kIQ3_S},   {"IQ3_XS", 22, DType::kIQ3_S},   {"IQ3_XXS", 23, DType::kIQ3_XXS},
    {"IQ2_XS", 20, DType::kIQ2_XS}, {"IQ2_S", 28, DType::kIQ2_XS},   {"IQ2_M", 29, DType::kIQ2_S},
    {"IQ2_XXS", 19, DType::kIQ2_XXS},
});
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"Q5_K", "Q5_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q3_K", "Q3_K_M"}, {"MXFP4", "MXFP4_MOE"}};

enum class Role : std::uint8_t { kEmbedding, kOutput, kQ, kK, kV, kQkv, kAttnOutput, kUp, kGate, kDown, kOther };

Role role_of(std::string_view name) {
  constexpr std::pair<std::string_view, Role> kParts[] = {
      {"attn_qkv.weight", Role::kQkv},  {"attn_kv_b.weight", Role::kV}, {"attn_v.weight", Role::kV},
      {"attn_k.weight", Role::kK},      {"attn_q.weight", Role::kQ},    {"attn_output.weight", Role::kAttnOutput},
      {"ffn_up", Role::kUp},            {"ffn_gate", Role::kGate},      {"ffn_down", Role::kDown}};
  if (name == "output.weight") return Role::kOutput;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Role::kEmbedding;
  for (const auto& [part, role] : kParts) {
    if (name.find(part) != name.npos) return role;
  }
  return Role::kOther;
}

// The first and the last eighth of the layers, and every third between.
bool gets_more_bits(std::int32_t layer, std::int32_t num_layers) {
  return layer < num_layers / 8 || layer >= 7 * num_layers / 8 || (layer - num_layers / 8) % 3 == 2;
}

class TypeChooser {
 public:
  TypeChooser(const Recipe& recipe, const RecipeModel& model) : recipe_(recipe), model_(model) {}

  // Called in the order of layers.
  DType choose(const TensorView& tensor) {
    const Role role = role_of(tensor.name);
    if (role == Role::kOutput || (model_.is_tied && role == Role::kEmbedding)) return head(tensor);
    if (is("MXFP4_MOE")) return tensor.shape[2] > 1 ? DType::kMXFP4 : DType::kQ8_0;
    if (role == Role::kEmbedding) return embedding();
    if (is_iq2()) return of_iq2(role);
    switch (role) {
      case Role::kV:
      case Role::kQkv: return value(num_values_++);
      case Role::kK: return model_.num_experts == 8 ? DType::kQ8_0 : query_or_key();
      case Role::kQ: return query_or_key();
      case Role::kDown: return down(layer_or(tensor, num_downs_++));
      case Role::kGate: return gate_or_up(layer_or(tensor, num_gates_++));
      case Role::kUp: return gate_or_up(layer_or(tensor, num_ups_++));
      case Role::kAttnOutput: return attention_output();
      default: return recipe_.base;
    }
  }

 private:
  bool is(std::string_view name) const { return recipe_.name == name; }
  bool is_gqa() const { return model_.num_heads_per_kv_head >= 4; }
  bool is_iq2() const { return recipe_.name.starts_with("IQ2"); }
  bool is_larger_iq2() const { return is("IQ2_S") || is("IQ2_M"); }

  DType embedding() const {
    if (is("TQ1_0") || is("TQ2_0") || is("Q2_0")) return DType::kQ4_K;
    if (is("IQ3_XXS")) return DType::kIQ3_S;
    if (is_iq2()) return is_larger_iq2() ? DType::kIQ3_S : DType::kQ2_K;
    return recipe_.base;
  }

  DType of_iq2(Role role) {
    const DType raised = is_larger_iq2() ? DType::kIQ3_S : DType::kQ2_K;
    switch (role) {
      case Role::kV:
      case Role::kQkv: return is_gqa() || model_.num_experts >= 4 ? DType::kQ4_K : raised;
      case Role::kK: return model_.num_experts == 8 ? DType::kQ4_K : recipe_.base;
      case Role::kDown: return num_downs_++ < model_.num_layers / 8 ? raised : recipe_.base;
      case Role::kAttnOutput:
        if (model_.num_experts == 8) return DType::kQ5_K;
        return is_larger_iq2() ? DType::kIQ3_S : recipe_.base;
      default: return recipe_.base;
    }
  }

  DType query_or_key() const {
    if (is("IQ3_XS")) return DType::kIQ3_XXS;
    return is("IQ3_XXS") ? DType::kIQ2_S : recipe_.base;
  }

  DType gate_or_up(std::int32_t layer) const {
    const bool is_inner = layer >= model_.num_layers / 8 && layer < 7 * model_.num_layers / 8;
    return is("IQ3_XS") && is_inner ? DType::kIQ3_XXS : recipe_.base;
  }

  std::int32_t layer_or(const TensorView& tensor, std::int32_t count) const {
    return model_.num_experts > 1 ? layer_of_tensor(tensor.name) : count;
  }

  DType head(const TensorView& tensor) const {
    if (is("MXFP4_MOE") || tensor.row_length() % info_of(recipe_.base).block_elements != 0) return DType::kQ8_0;
    if (is_iq2() || is("IQ3_XXS")) return DType::kQ5_K;
    return recipe_.base == DType::kQ8_0 ? DType::kQ8_0 : DType::kQ6_K;
  }

  DType value(std::int32_t index) const {
    if (model_.num_experts == 8) return DType::kQ8_0;
    DType type = recipe_.base;
    if (is("Q2_K")) {
      type = is_gqa() ? DType::kQ4_K : DType::kQ3_K;
    } else if (is("Q2_K_S") && is_gqa()) {
      type = DType::kQ4_K;
    } else if (is("IQ3_XXS")) {
      type = is_gqa() ? DType::kQ4_K : (model_.has_importance ? DType::kIQ3_XXS : DType::kIQ3_S);
    } else if (is("IQ3_M") || ((is("IQ3_XS") || is("IQ3_S")) && is_gqa())) {
      type = DType::kQ4_K;
    } else if (is("Q3_K_M")) {
      type = index < 2 ? DType::kQ5_K : DType::kQ4_K;
    } else if (is("Q3_K_L")) {
      type = DType::kQ5_K;
    } else if ((is("IQ4_NL") || is("IQ4_XS")) && is_gqa()) {
      type = DType::kQ5_K;
    } else if ((is("Q4_K_M") || is("Q5_K_M")) && gets_more_bits(index, num_values())) {
      type = DType::kQ6_K;
    } else if (is("Q4_K_S") && index < 4) {
      type = DType::kQ5_K;
    }
    const bool is_70b = model_.architecture == "llama" && model_.num_layers == 80 && model_.num_heads_per_kv_head > 1;
    return is_70b && (type == DType::kQ3_K || type == DType::kQ4_K) ? DType::kQ5_K : type;
  }

  DType down(std::int32_t layer) const {
    const std::int32_t count = model_.num_layers;
    const bool is_falcon = model_.architecture == "falcon";
    if (is("Q2_K")) return DType::kQ3_K;
    if (is("Q2_K_S")) return layer < count / 8 ? DType::kQ4_K : recipe_.base;
    if (is("IQ3_XXS") && !model_.has_importance) return layer < count / 8 ? DType::kQ4_K : DType::kQ3_K;
    if (is("IQ3_M") && (layer < count / 8 || (model_.num_experts == 8 && gets_more_bits(layer, count)))) return DType::kQ4_K;
    if (is("Q3_K_M")) {
      if (layer < count / 16) return DType::kQ5_K;
      return !is_falcon || gets_more_bits(layer, count) ? DType::kQ4_K : DType::kQ3_K;
    }
    if (is("Q3_K_L")) return is_falcon ? DType::kQ4_K : DType::kQ5_K;
    if (is("Q4_K_M") && is_falcon) {
      if (layer < count / 16) return DType::kQ6_K;
      return gets_more_bits(layer, count) ? DType::kQ5_K : DType::kQ4_K;
    }
    if ((is("Q4_K_M") || is("Q5_K_M")) && gets_more_bits(layer, count)) return DType::kQ6_K;
    if (layer >= count / 8) return recipe_.base;
    if ((is("IQ4_NL") || is("IQ4_XS")) && !model_.has_importance) return DType::kQ5_K;
    if (is("Q4_K_S") && !is_falcon) return DType::kQ5_K;
    if (is("Q4_0") && model_.has_importance) return DType::kQ4_1;
    if (is("Q5_0") && model_.has_importance) return DType::kQ5_1;
    return recipe_.base;
  }

  DType attention_output() const {
    if (model_.architecture == "falcon") return is("Q3_K_L") ? DType::kQ4_K : recipe_.base;
    if (model_.num_experts == 8) {
      constexpr std::string_view kRaised[] = {"Q2_K",   "Q3_K_S", "Q3_K_M", "IQ4_NL", "IQ4_XS", "Q4_K_S",
                                              "Q4_K_M", "IQ3_XS", "IQ3_XXS", "IQ3_S", "IQ3_M"};
      return std::ranges::find(kRaised, recipe_.name) != std::end(kRaised) ? DType::kQ5_K : recipe_.base;
    }
    if (is("Q2_K")) return DType::kQ3_K;
    if (is("IQ3_XXS")) return DType::kIQ3_S;
    if (is("Q3_K_M") || is("IQ3_M")) return DType::kQ4_K;
    if (is("Q3_K_L")) return DType::kQ5_K;
    return recipe_.base;
  }

  std::int32_t num_values() const { return total_values_; }

 public:
  // How many tensors the rules for values count among.
  void count_values(const std::vector<TensorView>& tensors) {
    total_values_ = static_cast<std::int32_t>(std::ranges::count_if(tensors, [](const TensorView& tensor) {
      const Role role = role_of(tensor.name);
      return role == Role::kV || role == Role::kQkv;
    }));
  }

 private:
  const Recipe& recipe_;
  const RecipeModel& model_;
  std::int32_t total_values_ = 0;
  std::int32_t num_values_ = 0, num_downs_ = 0, num_gates_ = 0, num_ups_ = 0;
};

}  // namespace

std::vector<std::string_view> recipe_names() {
  std::vector<std::string_view> names;
  for (const Recipe& recipe : kRecipes) names.push_back(recipe.name);
  return names;
}

std::uint32_t file_type_of(DType type) {
  const auto found = std::ranges::find(kRecipes, type, &Recipe::base);
  return found != kRecipes.end() ? found->file_type : 0;
}

Result<Recipe> recipe_named(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const auto& [alias, recipe] : kAliases) {
    if (upper == alias) upper = recipe;
  }
  const auto found = std::ranges::find(kRecipes, upper, &Recipe::name);
  if (found != kRecipes.end()) return *found;
  return make_error(ErrorKind::kUsage,
                    fmt::format("type: one of {}, not '{}'", fmt::join(recipe_names(), ", "), printable(name)), "type");
}

bool is_quantized_by_recipes(const TensorView& tensor) {
  constexpr std::string_view kKept[] = {"_norm.weight", "ffn_gate_inp.weight", "altup",         "laurel",
                                        "per_layer_model_proj", "ssm_conv1d", "shortconv.conv.weight", "attn_rel_b.weight"};
  if (tensor.rank < 2 || tensor.num_rows() < 2 || !tensor.name.ends_with("weight")) return false;
  if (tensor.name == "position_embd.weight" || tensor.name == "token_types.weight") return false;
  return std::ranges::none_of(kKept, [&](std::string_view part) { return tensor.name.find(part) != std::string::npos; });
}

TypeChoice fitting(DType wanted, std::int64_t row_length) {
  const auto fits = [&](DType type) { return row_length % info_of(type).block_elements == 0; };
  if (fits(wanted)) return {.type = wanted, .wanted = wanted};
  DType type = DType::kF16;
  switch (wanted) {
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kIQ4_XS: type = DType::kIQ4_NL; break;
    case DType::kQ2_0:
    case DType::kQ1_0:
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kTQ1_0:
    case DType::kTQ2_0: type = DType::kQ4_0; break;
    case DType::kQ4_K:
    case DType::kNVFP4: type = DType::kQ5_0; break;
    case DType::kQ5_K: type = DType::kQ5_1; break;
    case DType::kQ6_K: type = DType::kQ8_0; break;
    default: break;
  }
  return {.type = fits(type) ? type : DType::kF16, .wanted = wanted};
}

std::vector<TypeChoice> types_of(const Recipe& recipe, const RecipeModel& model, std::vector<TensorView> tensors) {
  std::vector<TypeChoice> choices(tensors.size());
  TypeChooser chooser(recipe, model);
  chooser.count_values(tensors);
  // Rules count the tensors of a kind layer by layer, whatever their order in the file.
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return layer_of_tensor(tensors[i].name); });
  for (const std::size_t i : order) {
    const TensorView& tensor = tensors[i];
    if (!is_quantized_by_recipes(tensor)) {
      choices[i] = {.type = tensor.dtype, .wanted = tensor.dtype};
    } else if (recipe.is_float()) {
      choices[i] = {.type = recipe.base, .wanted = recipe.base};
    } else {
      choices[i] = fitting(chooser.choose(tensor), tensor.row_length());
    }
  }
  return choices;
}

}  // namespace kvasir::compress
