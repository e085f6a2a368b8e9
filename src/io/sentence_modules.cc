#include "io/sentence_modules.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text_file.h"
#include "io/json_file.h"

namespace kvasir::io {
namespace {

namespace fs = std::filesystem;
using simdjson::dom::element;

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::int64_t kMaxFeatures = 1 << 20;

constexpr std::pair<const char*, PoolingKind> kPoolings[] = {
    {"pooling_mode_mean_tokens", PoolingKind::kMean},
    {"pooling_mode_cls_token", PoolingKind::kFirst},
    {"pooling_mode_lasttoken", PoolingKind::kLast},
};

std::unexpected<Error> bad_module(const std::string& file, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(file), problem));
}

std::string text_of(const element& object, std::string_view key) {
  std::string_view text;
  return object.at_key(key).get_string().get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

bool is_in_folder(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The only pooling that config.json says is true, and whether prompts take part.
Status read_pooling(const std::string& folder, SentenceModules& modules) {
  KVASIR_TRY(const JsonFile file, JsonFile::open((fs::path(folder) / "config.json").string(), kMaxBytes));
  std::optional<PoolingKind> pooling;
  for (const auto [key, value] : file.root()) {
    bool is_on = false;
    const std::string_view name = key;
    if (!name.starts_with("pooling_mode_") || value.get_bool().get(is_on) != simdjson::SUCCESS || !is_on) continue;
    const auto* known = std::begin(kPoolings);
    while (known != std::end(kPoolings) && known->first != name) ++known;
    if (known == std::end(kPoolings) || pooling) {
      return bad_module(file.name(), fmt::format("{} is not computed here, or not beside another", printable(name)));
    }
    pooling = known->second;
  }
  bool pools_prompts = true;
  const auto said = file.root().at_key("include_prompt").get_bool().get(pools_prompts);
  modules.pools_prompts = said != simdjson::SUCCESS || pools_prompts;
  modules.pooling = pooling;
  if (pooling) return {};
  return bad_module(file.name(), "no pooling_mode of the mean, the first or the last token is true");
}

Result<DenseModule> read_dense(const std::string& folder) {
  KVASIR_TRY(const JsonFile file, JsonFile::open((fs::path(folder) / "config.json").string(), kMaxBytes));
  DenseModule dense{.folder = folder};
  for (const auto& [key, size] : {std::pair("in_features", &dense.in_features),
                                  std::pair("out_features", &dense.out_features)}) {
    if (file.root().at_key(key).get_int64().get(*size) != simdjson::SUCCESS || *size < 1 || *size > kMaxFeatures) {
      return bad_module(file.name(), fmt::format("{} must be between 1 and {}", key, kMaxFeatures));
    }
  }
  std::string_view activation = "Identity";
  const auto found = file.root().at_key("activation_function").get_string().get(activation);
  if (found == simdjson::SUCCESS && !activation.ends_with("Identity")) {
    return bad_module(file.name(), fmt::format("the activation {} is not computed here", printable(activation)));
  }
  bool has_bias = true;
  if (file.root().at_key("bias").get_bool().get(has_bias) == simdjson::SUCCESS && !has_bias) return dense;
  return bad_module(file.name(), "a dense layer with a bias is not computed here");
}

Status read_module(const std::string& folder, const std::string& file, const element& json, SentenceModules& modules) {
  const std::string type = text_of(json, "type"), path = text_of(json, "path");
  const std::string_view kind = std::string_view(type).substr(type.rfind('.') + 1);
  if (path.find('/') != path.npos || path.starts_with('.')) {
    return bad_module(file, fmt::format("the path {} is no folder in this one", printable(path)));
  }
  const std::string own = (fs::path(folder) / path).string();
  if (kind == "Transformer") return {};
  if (kind == "Normalize") {
    modules.normalizes = true;
    return {};
  }
  if (kind == "Pooling") {
    return read_pooling(own, modules);
  }
  if (kind != "Dense") return bad_module(file, fmt::format("modules of the type {} are not read", printable(type)));
  KVASIR_TRY(DenseModule dense, read_dense(own));
  modules.dense.push_back(std::move(dense));
  return {};
}

Status read_prompts(const std::string& folder, SentenceModules& modules) {
  const std::string path = (fs::path(folder) / "config_sentence_transformers.json").string();
  if (!is_in_folder(path) || !modules.pools_prompts) return {};
  KVASIR_TRY(const JsonFile file, JsonFile::open(path, kMaxBytes));
  std::string_view usual;
  if (file.root().at_key("default_prompt_name").get_string().get(usual) == simdjson::SUCCESS) {
    modules.default_prompt_name = usual;
  }
  simdjson::dom::object prompts;
  if (file.root().at_key("prompts").get_object().get(prompts) != simdjson::SUCCESS) return {};
  for (const auto [name, value] : prompts) {
    std::string_view text;
    if (value.get_string().get(text) == simdjson::SUCCESS) modules.prompts.emplace(name, text);
  }
  return {};
}

}  // namespace

Result<SentenceModules> read_sentence_modules(const std::string& folder) {
  SentenceModules modules;
  const std::string path = (fs::path(folder) / "modules.json").string();
  if (!is_in_folder(path)) return modules;
  const auto text = read_text_file(path, kMaxBytes);
  simdjson::dom::parser parser;
  simdjson::dom::array list;
  if (!text || parser.parse(*text).get_array().get(list) != simdjson::SUCCESS) {
    return bad_module(path, "is no JSON array, or cannot be read");
  }
  for (const element json : list) KVASIR_CHECKED(read_module(folder, path, json, modules));
  KVASIR_CHECKED(read_prompts(folder, modules));
  return modules;
}

}  // namespace kvasir::io
