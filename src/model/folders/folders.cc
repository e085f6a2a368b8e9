#include "model/folders/folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "model/arch/registry.h"
#include "model/model.h"

namespace kvasir::model {
namespace {

#define KVASIR_FOLDER(name) &name,
const io::HfMapping* const kFolders[] = {
#include "model/folders/folders.def"
};
#undef KVASIR_FOLDER

#define KVASIR_UNSUPPORTED(name, relative, lacks) name,
constexpr std::string_view kUnsupportedNames[] = {
#include "model/arch/unsupported.def"
};
#undef KVASIR_UNSUPPORTED

// Types whose name in GGUF files is another one.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"cohere", "command-r"},         {"deepseek_v2", "deepseek2"},     {"deepseek_v3", "deepseek2"},
    {"deepseek_v32", "deepseek32"},  {"deepseek_v4", "deepseek4"},     {"glm4_moe_lite", "deepseek2"},
    {"glm_moe_dsa", "glm-dsa"},      {"gpt_bigcode", "starcoder"},     {"granitemoehybrid", "granitehybrid"},
    {"hunyuan_v1_dense", "hunyuan-dense"}, {"hunyuan_v1_moe", "hunyuan-moe"}, {"kimi_k2", "deepseek2"},
    {"mimo_v2_flash", "mimo2"},      {"minimax", "minimax-01"},        {"phi", "phi2"},
    {"step3p5", "step35"},
};

// Letters and digits alone, as the two sides differ in what is between them.
std::string plain(std::string_view name) {
  std::string letters(name);
  std::erase_if(letters, [](char c) { return c == '_' || c == '-' || c == '.'; });
  return letters;
}

// The name in GGUF files of a type that is not supported; empty: it is not known.
std::string_view unsupported_name(std::string_view model_type) {
  constexpr std::string_view kText = "_text";
  if (model_type.ends_with(kText)) model_type.remove_suffix(kText.size());
  const auto* const other = std::ranges::find(kOtherNames, model_type, &std::pair<std::string_view, std::string_view>::first);
  if (other != std::end(kOtherNames)) return other->second;
  const auto* const same = std::ranges::find(kUnsupportedNames, plain(model_type), plain);
  return same == std::end(kUnsupportedNames) ? std::string_view() : *same;
}

}  // namespace

std::string_view unsupported_architecture(std::string_view model_type) {
  const std::string_view name = unsupported_name(model_type);
  return name.empty() ? model_type : name;
}

const io::HfMapping* folder_of_architecture(std::string_view architecture) {
  const auto* const found = std::ranges::find(kFolders, architecture, &io::HfMapping::architecture);
  return found == std::end(kFolders) ? nullptr : *found;
}

Result<const io::HfMapping*> hf_mapping(std::string_view model_type, bool is_bidirectional) {
  std::vector<std::string_view> known;
  for (const io::HfMapping* mapping : kFolders) {
    for (const std::string_view type : mapping->model_types) {
      if (type.empty()) continue;
      if (type == model_type && mapping->is_bidirectional == is_bidirectional) return mapping;
      if (mapping->is_bidirectional == is_bidirectional) known.push_back(type);
    }
  }
  if (is_bidirectional) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("model_type '{}' with use_bidirectional_attention is not supported ({} are)",
                                  printable(model_type), fmt::join(known, ", ")));
  }
  if (const std::string why = why_unsupported(unsupported_name(model_type)); !why.empty()) {
    return make_error(ErrorKind::kBadFile, fmt::format("model_type '{}' is not supported{}", printable(model_type), why));
  }
  return make_error(ErrorKind::kBadFile, fmt::format("model_type '{}' is not supported ({} are)",
                                                     printable(model_type), fmt::join(known, ", ")));
}

}  // namespace kvasir::model
