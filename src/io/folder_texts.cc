// The text settings of a folder's small files, under GGUF's keys.
#include "io/folder_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "base/text_file.h"
#include "io/json_file.h"

namespace kvasir::io {
namespace {

using simdjson::dom::element;

constexpr std::size_t kMaxTextBytes = 256 << 20;  // tokenizer.json of 262,144 tokens has 33 MB
constexpr std::int64_t kMaxTokens = 1 << 28;
constexpr const char* kTemplateKey = "tokenizer.chat_template";

// generation_config.json's names of what GGUF calls general.sampling.*.
constexpr std::pair<const char*, const char*> kSamplingKeys[] = {
    {"temperature", "temp"}, {"top_k", "top_k"}, {"top_p", "top_p"},
    {"min_p", "min_p"},      {"repetition_penalty", "penalty_repeat"},
};

// Empty: there is no such file.
Result<std::string> read_if_there(const std::string& folder, std::string_view name) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::string();
  auto text = read_text_file(path, kMaxTextBytes);
  if (text) return std::move(*text);
  return make_error(ErrorKind::kBadFile, fmt::format("{}: cannot be read, or holds more than {} bytes",
                                                     printable_line(path), kMaxTextBytes));
}

// A text, or a list of {name, template}.
void map_template(const element& json, MetadataValues& values) {
  std::string_view text;
  simdjson::dom::array list;
  if (json.get_string().get(text) == simdjson::SUCCESS) {
    values[kTemplateKey] = std::string(text);
    return;
  }
  if (json.get_array().get(list) != simdjson::SUCCESS) return;
  for (const element item : list) {
    std::string_view name;
    if (item["name"].get_string().get(name) != simdjson::SUCCESS ||
        item["template"].get_string().get(text) != simdjson::SUCCESS) {
      continue;
    }
    values[name == "default" ? kTemplateKey : fmt::format("{}.{}", kTemplateKey, name)] = std::string(text);
  }
}

// The first of the places that has one: a file of its own, then two JSON files.
Status find_template(const std::string& folder, const FolderTexts& texts, MetadataValues& values) {
  KVASIR_TRY(std::string own, read_if_there(folder, "chat_template.jinja"));
  if (!own.empty()) {
    values[kTemplateKey] = std::move(own);
    return {};
  }
  KVASIR_TRY(const std::string old, read_if_there(folder, "chat_template.json"));
  for (const auto& [name, text] : {std::pair("tokenizer_config.json", std::string_view(texts.tokenizer_config)),
                                   std::pair("chat_template.json", std::string_view(old))}) {
    if (text.empty() || values.contains(kTemplateKey)) continue;
    KVASIR_TRY(const JsonFile file, JsonFile::parse(text, (std::filesystem::path(folder) / name).string()));
    element json;
    if (file.root().at_key("chat_template").get(json) == simdjson::SUCCESS) map_template(json, values);
  }
  return {};
}

// Its model's type, such as "BPE"; empty where the document does not say.
std::string tokenizer_kind(const element& root) {
  std::string_view type;
  return root["model"]["type"].get_string().get(type) == simdjson::SUCCESS ? std::string(type) : std::string();
}

// One more than the greatest id; 0 where the document is not as expected, which whoever reads it whole says.
std::int64_t count_tokens(const element& root) {
  std::int64_t count = 0;
  const auto take = [&count](const element& id) {
    std::int64_t number = 0;
    if (id.get_int64().get(number) == simdjson::SUCCESS && number < kMaxTokens) count = std::max(count, number + 1);
  };
  simdjson::dom::object vocab;
  simdjson::dom::array pieces;
  if (root["model"]["vocab"].get_object().get(vocab) == simdjson::SUCCESS) {
    for (const auto [token, id] : vocab) take(id);
  } else if (root["model"]["vocab"].get_array().get(pieces) == simdjson::SUCCESS) {
    for (const element piece : pieces) {
      (void)piece;
      ++count;
    }
  }
  simdjson::dom::array added;
  if (root["added_tokens"].get_array().get(added) != simdjson::SUCCESS) return count;
  for (const element token : added) {
    element id;
    if (token["id"].get(id) == simdjson::SUCCESS) take(id);
  }
  return count;
}

// "smollm2" of "models/smollm2/".
std::string last_name(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

Result<FolderTexts> read_folder_texts(const std::string& folder) {
  FolderTexts texts;
  KVASIR_TRY(texts.config, read_if_there(folder, "config.json"));
  KVASIR_TRY(texts.generation_config, read_if_there(folder, "generation_config.json"));
  KVASIR_TRY(texts.tokenizer, read_if_there(folder, "tokenizer.json"));
  KVASIR_TRY(texts.tokenizer_config, read_if_there(folder, "tokenizer_config.json"));
  return texts;
}

Status map_texts(const std::string& folder, const FolderTexts& texts, MetadataValues& values) {
  values["general.name"] = last_name(folder);
  KVASIR_CHECKED(find_template(folder, texts, values));
  simdjson::dom::parser parser;
  element root;
  if (parser.parse(texts.tokenizer).get(root) == simdjson::SUCCESS) {
    if (const std::int64_t num_tokens = count_tokens(root); num_tokens > 0) values["tokenizer.num_tokens"] = num_tokens;
    if (std::string kind = tokenizer_kind(root); !kind.empty()) values["tokenizer.kind"] = std::move(kind);
  }
  if (texts.generation_config.empty()) return {};
  KVASIR_TRY(const JsonFile file, JsonFile::parse(texts.generation_config, folder + "/generation_config.json"));
  for (const auto& [key, gguf] : kSamplingKeys) {
    element value;
    double number = 0.0;
    if (file.root().at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) continue;
    if (value.get_double().get(number) != simdjson::SUCCESS) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: {} must be a number, is {}", printable_line(file.name()), key,
                                                         printable(simdjson::minify(value))));
    }
    values[fmt::format("general.sampling.{}", gguf)] = number;
  }
  bool samples = true;  // without the key the file's temperature says so
  if (file.root().at_key("do_sample").get_bool().get(samples) == simdjson::SUCCESS && !samples) {
    values["general.sampling.temp"] = 0.0;
  }
  return {};
}

}  // namespace kvasir::io
