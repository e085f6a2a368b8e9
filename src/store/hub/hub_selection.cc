#include "store/hub/hub_selection.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/nearest_name.h"
#include "base/printable.h"

namespace kvasir::store {
namespace {

constexpr std::string_view kDefaultQuantization = "Q4_K_M";
constexpr std::string_view kSplitPattern = "-00001-of-00001.gguf";
constexpr std::size_t kMostShownNames = 40;
constexpr std::int32_t kMostParts = 9999;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_gguf(std::string_view path) { return in_lower_case(path).ends_with(".gguf"); }

struct SplitName {
  std::string_view stem;  // before "-00001-of-00003.gguf"
  std::int32_t part = 0;
  std::int32_t num_parts = 0;
};

// Nothing for a file that is no part of a set.
std::optional<SplitName> parse_split(std::string_view path) {
  if (path.size() <= kSplitPattern.size()) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kSplitPattern.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  SplitName split{path.substr(0, path.size() - tail.size()), 0, 0};
  const auto read = [](std::string_view digits, std::int32_t& number) {
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  };
  if (!read(tail.substr(1, 5), split.part) || !read(tail.substr(10, 5), split.num_parts)) return std::nullopt;
  if (split.part < 1 || split.part > split.num_parts || split.num_parts > kMostParts) return std::nullopt;
  return split;
}

// Whether the name has the quantization as a word of its own: "q8_0" is in "m-Q8_0.gguf", and not in
// "m-IQ8_0.gguf".
bool has_quantization(std::string_view path, std::string_view quantization) {
  const std::string name = in_lower_case(path);
  const std::string wanted = in_lower_case(quantization);
  const auto is_part_of_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = name.find(wanted); at != name.npos; at = name.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    const bool begins = at == 0 || !is_part_of_word(name[at - 1]);
    const bool ends = end == name.size() || !is_part_of_word(name[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::vector<std::string> of_quantization(const std::vector<std::string>& models,
                                         std::string_view quantization) {
  std::vector<std::string> found;
  for (const std::string& path : models) {
    if (has_quantization(base_name(path), quantization)) found.push_back(path);
  }
  return found;
}

std::string shown_list(const std::vector<std::string>& paths) {
  std::vector<std::string> shown;
  for (const std::string& path : paths) {
    if (shown.size() == kMostShownNames) break;
    shown.push_back(printable(path, 120));
  }
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (paths.size() > shown.size()) text += fmt::format(" and {} more", paths.size() - shown.size());
  return text;
}

std::unexpected<Error> choose_one(const HubName& name, std::string_view problem,
                                  const std::vector<std::string>& models) {
  return make_error(ErrorKind::kNotFound,
                    fmt::format("{}: {}; choose one as {}:FILE from: {}", name.repository(), problem,
                                name.repository(), shown_list(models)));
}

std::unexpected<Error> no_such_file(const HubName& name, const std::vector<std::string>& paths) {
  std::vector<std::string_view> candidates;
  for (const std::string& path : paths) candidates.push_back(path);
  for (const std::string& path : paths) candidates.push_back(base_name(path));
  std::string_view nearest = nearest_name(name.file, candidates);
  for (const std::string& path : paths) {
    if (base_name(path) == nearest) nearest = path;
  }
  std::vector<std::string> models = gguf_models(paths);
  const std::string hint = !nearest.empty()  ? fmt::format("; did you mean {}?", printable(nearest, 120))
                           : !models.empty() ? fmt::format("; there are {}", shown_list(models))
                                             : std::string();
  return make_error(ErrorKind::kNotFound, fmt::format("{}: no file is called '{}'{}", name.repository(),
                                                      printable(name.file, 120), hint));
}

// The set of a GGUF file, all of which must be there.
Result<HubSelection> whole_set(const HubName& name, const std::string& path,
                               const std::vector<std::string>& paths) {
  HubSelection selection{.model_path = {}, .paths = split_set_of(path), .index_path = {}};
  selection.model_path = selection.paths.front();
  for (const std::string& part : selection.paths) {
    if (std::ranges::find(paths, part) != paths.end()) continue;
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: {} belongs to a set of {} files, and {} is missing", name.repository(),
                                  printable(path, 120), selection.paths.size(), printable(part, 120)));
  }
  return selection;
}

Result<HubSelection> select_named(const HubName& name, const std::vector<std::string>& paths) {
  if (std::ranges::find(paths, name.file) != paths.end()) return whole_set(name, name.file, paths);
  const std::vector<std::string> models = gguf_models(paths);
  const std::vector<std::string> found = of_quantization(models, name.file);
  if (found.size() == 1) return whole_set(name, found.front(), paths);
  if (found.empty()) return no_such_file(name, paths);
  return choose_one(name, fmt::format("{} files are {}", found.size(), printable(name.file)), found);
}

// Files of a sentence-transformers module: "1_Pooling/config.json".
bool is_module_file(std::string_view path) {
  const std::size_t slash = path.find('/');
  if (slash == path.npos || path.find('/', slash + 1) != path.npos) return false;
  const std::string_view folder = path.substr(0, slash);
  const std::size_t digits = folder.find_first_not_of("0123456789");
  const bool is_module = digits != 0 && digits != folder.npos && folder[digits] == '_';
  return is_module && (path.ends_with(".json") || path.ends_with(".safetensors"));
}

// Whether a file beside the weights belongs to the model: its configuration, tokenizer and templates.
bool belongs_to_folder(std::string_view path) {
  if (path.starts_with('.')) return false;
  if (is_module_file(path)) return true;
  if (path.starts_with("additional_chat_templates/")) return path.ends_with(".jinja");
  if (path.find('/') != path.npos || path.ends_with(".index.json")) return false;
  constexpr std::string_view kTokenizers[] = {"tokenizer.model", "vocab.txt", "merges.txt"};
  return path.ends_with(".json") || path.ends_with(".jinja") ||
         std::ranges::find(kTokenizers, path) != std::end(kTokenizers);
}

Result<HubSelection> select_folder(const HubName& name, const std::vector<std::string>& paths) {
  constexpr std::string_view kIndex = "model.safetensors.index.json";
  constexpr std::string_view kSingle = "model.safetensors";
  constexpr std::string_view kConfig = "config.json";
  const auto has = [&](std::string_view path) { return std::ranges::find(paths, path) != paths.end(); };
  HubSelection selection;
  std::vector<std::string> weights;
  for (const std::string& path : paths) {
    if (path.find('/') == path.npos && path.ends_with(".safetensors")) weights.push_back(path);
    if (path != kConfig && belongs_to_folder(path)) selection.paths.push_back(path);
  }
  if (has(kIndex)) {
    selection.index_path = kIndex;
    selection.paths.insert(selection.paths.begin(), selection.index_path);
  } else if (has(kSingle)) {
    selection.paths.emplace_back(kSingle);
  } else if (weights.size() == 1) {
    selection.paths.push_back(weights.front());
  } else {
    const bool has_pickle = std::ranges::any_of(paths, [](std::string_view path) {
      return path.ends_with(".bin") || path.ends_with(".pt") || path.ends_with(".pth");
    });
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: has no GGUF and no safetensors weights{}", name.repository(),
                                  has_pickle ? "; pickle files (.bin, .pt) are never read" : ""));
  }
  if (!has(kConfig)) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: has safetensors but no config.json", name.repository()));
  }
  selection.paths.emplace_back(kConfig);
  return selection;
}

}  // namespace

std::vector<std::string> split_set_of(const std::string& path) {
  const auto split = parse_split(path);
  if (!split) return {path};
  std::vector<std::string> set;
  for (std::int32_t part = 1; part <= split->num_parts; ++part) {
    set.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", split->stem, part, split->num_parts));
  }
  return set;
}

std::vector<std::string> gguf_models(const std::vector<std::string>& paths) {
  std::vector<std::string> models;
  for (const std::string& path : paths) {
    const std::string name = in_lower_case(base_name(path));
    // Projectors of images and importance matrices are GGUF files too.
    if (!is_gguf(name) || name.find("mmproj") != name.npos || name.find("imatrix") != name.npos) continue;
    const auto split = parse_split(path);
    if (!split || split->part == 1) models.push_back(path);
  }
  std::ranges::sort(models);
  return models;
}

Result<HubSelection> select_files(const HubName& name, const std::vector<std::string>& paths) {
  if (!name.file.empty()) return select_named(name, paths);
  const std::vector<std::string> models = gguf_models(paths);
  if (models.empty()) return select_folder(name, paths);
  if (models.size() == 1) return whole_set(name, models.front(), paths);
  const std::vector<std::string> found = of_quantization(models, kDefaultQuantization);
  if (found.size() == 1) return whole_set(name, found.front(), paths);
  return choose_one(name,
                    fmt::format("has {} GGUF models, {} of them {}", models.size(),
                                found.empty() ? "none" : std::to_string(found.size()), kDefaultQuantization),
                    models);
}

Result<std::vector<std::string>> shards_of_index(const HubName& name, std::string_view index_json) {
  simdjson::dom::parser parser;
  simdjson::dom::object map;
  const auto error = parser.parse(simdjson::padded_string(index_json))["weight_map"].get_object().get(map);
  std::set<std::string> shards;
  bool is_sound = error == simdjson::SUCCESS;
  if (is_sound) {
    for (const auto& [tensor, json] : map) {
      std::string_view file;
      is_sound = is_sound && json.get_string().get(file) == simdjson::SUCCESS && is_inside_path(file) &&
                 file.ends_with(".safetensors");
      if (is_sound) shards.emplace(file);
    }
  }
  if (is_sound && !shards.empty()) return std::vector<std::string>(shards.begin(), shards.end());
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: model.safetensors.index.json does not say which files hold the tensors",
                                name.repository()));
}

Status add_shards(const HubName& name, std::string_view index_json, const std::vector<std::string>& paths,
                  HubSelection& selection) {
  KVASIR_TRY(const std::vector<std::string> shards, shards_of_index(name, index_json));
  for (const std::string& shard : shards) {
    if (std::ranges::find(paths, shard) == paths.end()) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: the index names {}, which is not there",
                                                         name.repository(), printable(shard, 120)));
    }
  }
  // Before config.json.
  selection.paths.insert(selection.paths.end() - 1, shards.begin(), shards.end());
  return {};
}

}  // namespace kvasir::store
