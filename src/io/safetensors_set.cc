#include "io/safetensors_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/text_file.h"
#include "io/json_file.h"

namespace kvasir::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr std::size_t kMaxIndexBytes = 100'000'000;
constexpr std::string_view kPickleEndings[] = {".bin", ".pt", ".pth", ".ckpt"};

using WeightMap = std::vector<std::pair<std::string, std::string>>;  // tensor, file; sorted by tensor

std::unexpected<Error> bad_folder(const std::string& where, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(where), problem));
}

std::string path_in(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// "model-00002-of-00003.safetensors"
bool is_shard_name(std::string_view name) {
  constexpr std::string_view kPattern = "model-00000-of-00000.safetensors";
  return std::ranges::equal(name, kPattern, [](char c, char in_pattern) {
    return in_pattern == '0' ? c >= '0' && c <= '9' : c == in_pattern;
  });
}

std::vector<std::string> file_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name.find('/') == name.npos && name.find('\0') == name.npos && name != "." && name != "..";
}

// Why there are no weights to read.
std::unexpected<Error> no_weights(const std::string& folder) {
  const std::vector<std::string> names = file_names(folder);
  for (const std::string& name : names) {
    const auto ends = [&name](std::string_view ending) { return name.ends_with(ending); };
    if (is_shard_name(name)) {
      return bad_folder(folder, fmt::format("has {} but no {}; is the download incomplete?", name, kIndexFile));
    }
    if (ends(".gguf")) {
      return bad_folder(folder, fmt::format("has no {}; did you mean the file {}?", kSingleFile, printable(name)));
    }
    if (std::ranges::any_of(kPickleEndings, ends)) {
      return bad_folder(folder, fmt::format("{} is a pickle file, which may run code when it is read; only safetensors "
                                            "and GGUF files are",
                                            printable(name)));
    }
  }
  return bad_folder(folder, fmt::format("has no {}", kSingleFile));
}

// The shards that lie in the folder, but belong to another set.
Status check_no_stray_shard(const std::string& folder, const std::set<std::string>& known) {
  for (const std::string& name : file_names(folder)) {
    if (!is_shard_name(name) || known.contains(name)) continue;
    return bad_folder(folder, known.empty() ? fmt::format("has {} beside {}, and no index that names it", name,
                                                          kSingleFile)
                                            : fmt::format("has {}, which {} does not name; remove the one that is "
                                                          "not of this model",
                                                          name, kIndexFile));
  }
  return {};
}

// Keeps what the index places in this file; each of those must be there.
Status keep_indexed(const std::string& path, const std::string& file, const WeightMap& map,
                    std::vector<SafetensorsTensor>& tensors) {
  std::set<std::string, std::less<>> wanted;
  for (const auto& [tensor, in_file] : map) {
    if (in_file == file) wanted.insert(tensor);
  }
  for (const SafetensorsTensor& tensor : tensors) {
    if (wanted.erase(tensor.name) == 0) {
      return bad_folder(path, fmt::format("has the tensor {}, which {} places in no or in another file",
                                          printable(tensor.name), kIndexFile));
    }
  }
  if (wanted.empty()) return {};
  return bad_folder(path, fmt::format("lacks the tensor {}, which {} places there", printable(*wanted.begin()),
                                      kIndexFile));
}

Result<std::optional<WeightMap>> read_index(const std::string& folder) {
  const std::string path = path_in(folder, kIndexFile);
  if (!is_there(path)) return std::nullopt;
  const auto text = read_text_file(path, kMaxIndexBytes);
  if (!text) return bad_folder(path, fmt::format("cannot be read, or holds more than {} bytes", kMaxIndexBytes));
  KVASIR_TRY(WeightMap map, parse_safetensors_index(*text, path));
  return map;
}

}  // namespace

Result<WeightMap> parse_safetensors_index(std::string_view text, const std::string& name) {
  KVASIR_TRY(const JsonFile index, JsonFile::parse(text, name));
  simdjson::dom::object weight_map;
  if (index.root()["weight_map"].get_object().get(weight_map) != simdjson::SUCCESS) {
    return bad_folder(name, "has no object weight_map");
  }
  WeightMap map;
  for (const auto [tensor, json] : weight_map) {
    std::string_view file;
    if (json.get_string().get(file) != simdjson::SUCCESS || !is_plain_file_name(file)) {
      return bad_folder(name, fmt::format("weight_map: tensor {} has no plain file name", printable(tensor)));
    }
    if (!file.ends_with(".safetensors")) {
      return bad_folder(name, fmt::format("weight_map: {} of tensor {} is no safetensors file", printable(file),
                                          printable(tensor)));
    }
    map.emplace_back(tensor, file);
  }
  if (map.empty()) return bad_folder(name, "weight_map names no tensor");
  std::ranges::sort(map);
  const auto twice = std::ranges::adjacent_find(map, {}, &WeightMap::value_type::first);
  if (twice == map.end()) return map;
  return bad_folder(name, fmt::format("weight_map: tensor {} appears twice", printable(twice->first)));
}

Result<SafetensorsSet> SafetensorsSet::open(const std::string& folder) {
  KVASIR_TRY(const std::optional<WeightMap> map, read_index(folder));
  std::set<std::string> names;
  if (map) {
    for (const auto& [tensor, file] : *map) names.insert(file);
  } else if (!is_there(path_in(folder, kSingleFile))) {
    return no_weights(folder);
  }
  KVASIR_CHECKED(check_no_stray_shard(folder, names));
  if (!map) names.insert(kSingleFile);
  SafetensorsSet set;
  for (const std::string& name : names) {
    const std::string path = path_in(folder, name);
    if (!is_there(path)) {
      return bad_folder(folder, fmt::format("{} is missing, which {} names; is the download incomplete?",
                                            printable(name), kIndexFile));
    }
    KVASIR_TRY(MmapFile file, MmapFile::open(path));
    KVASIR_TRY(std::vector<SafetensorsTensor> tensors, parse_safetensors(file.bytes(), path));
    if (map) KVASIR_CHECKED(keep_indexed(path, name, *map, tensors));
    std::ranges::move(tensors, std::back_inserter(set.tensors_));
    set.files_.push_back(std::move(file));
  }
  return set;
}

}  // namespace kvasir::io
