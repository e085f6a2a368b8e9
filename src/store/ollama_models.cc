#include "store/ollama_models.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/env.h"
#include "base/printable.h"
#include "base/text_file.h"
#include "store/hub/hub_name.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

constexpr std::string_view kLayerPrefix = "application/vnd.ollama.image.";
constexpr std::string_view kDigestPrefix = "sha256:";
constexpr std::size_t kDigestDigits = 64;
constexpr const char* kServiceFolder = "/usr/share/ollama/.ollama/models";

// Where a manifest lies below a folder of models.
struct ManifestPlace {
  fs::path folder;  // holds one file for each tag
  std::string tag;
};

std::unexpected<Error> wrong_ollama_name(std::string_view text) {
  return make_error(
      ErrorKind::kUsage,
      fmt::format("{}: a model of Ollama is ollama:NAME[:TAG] or ollama:HOST/NAMESPACE/NAME[:TAG]",
                  printable_line(text)));
}

// Names of three parts begin with a host, which may have a port.
Result<ManifestPlace> parse_ollama_name(std::string_view text) {
  std::string_view name = text.substr(std::string_view("ollama:").size());
  ManifestPlace place{.folder = "manifests", .tag = "latest"};
  const std::size_t colon = name.rfind(':');
  if (colon != name.npos && name.find('/', colon) == name.npos) {
    place.tag = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  const auto slashes = std::ranges::count(name, '/');
  const bool is_tag = is_inside_path(place.tag) && place.tag.find('/') == std::string::npos;
  if (!is_inside_path(name) || !is_tag || slashes > 2) return wrong_ollama_name(text);
  if (slashes < 2) place.folder /= "registry.ollama.ai";
  if (slashes < 1) place.folder /= "library";
  place.folder /= name;
  return place;
}

std::optional<OllamaLayer> read_layer(const dom::element& json) {
  std::string_view digest;
  OllamaLayer layer;
  if (json["digest"].get_string().get(digest) != simdjson::SUCCESS || !digest.starts_with(kDigestPrefix))
    return {};
  layer.digest = digest.substr(kDigestPrefix.size());
  const bool is_digest = layer.digest.size() == kDigestDigits &&
                         layer.digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_digest || json["size"].get_int64().get(layer.size_bytes) != simdjson::SUCCESS) return {};
  return layer.size_bytes < 0 ? std::nullopt : std::optional(layer);
}

// "; here are the tags latest, 7b", or how to get the model when none is here.
std::string tags_here(const ManifestPlace& place, const std::vector<fs::path>& folders) {
  std::vector<std::string> tags;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (auto it = fs::directory_iterator(folder / place.folder, error);
         !error && it != fs::directory_iterator(); it.increment(error)) {
      tags.push_back(printable(it->path().filename().native()));
    }
  }
  std::ranges::sort(tags);
  return tags.empty() ? std::string("; get it with: ollama pull") : fmt::format("; here are the tags {}", fmt::join(tags, ", "));
}

std::string joined_paths(const std::vector<fs::path>& paths) {
  std::vector<std::string> texts;
  for (const fs::path& path : paths) texts.push_back(printable_line(path.native()));
  return fmt::format("{}", fmt::join(texts, " or "));
}

Result<fs::path> blob_of(const fs::path& folder, const OllamaLayer& layer) {
  const fs::path blob = folder / "blobs" / ("sha256-" + layer.digest);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(blob, error);
  if (error) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: {}", printable_line(blob.native()), error.message()));
  }
  if (size == static_cast<std::uintmax_t>(layer.size_bytes)) return blob;
  return make_error(ErrorKind::kBadFile, fmt::format("{}: has {} bytes, Ollama's manifest says {}",
                                                     printable_line(blob.native()), size, layer.size_bytes));
}

}  // namespace

Result<OllamaLayer> parse_ollama_manifest(std::string_view json, std::string_view source) {
  const auto bad = [&](std::string_view problem) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(source), problem));
  };
  dom::parser parser;
  dom::array layers;
  if (parser.parse(simdjson::padded_string(json))["layers"].get_array().get(layers) != simdjson::SUCCESS) {
    return bad("is no manifest of Ollama");
  }
  std::optional<OllamaLayer> model;
  for (const dom::element element : layers) {
    std::string_view kind;
    if (element["mediaType"].get_string().get(kind) != simdjson::SUCCESS || !kind.starts_with(kLayerPrefix))
      continue;
    kind.remove_prefix(kLayerPrefix.size());
    if (kind == "adapter") return bad("the model has an adapter, which is not supported");
    if (kind == "tensor") return bad("the model is stored as single tensors, which is not supported");
    if (kind != "model") continue;
    if (model) return bad("the model has several files of weights, which is not supported");
    model = read_layer(element);
    if (!model) return bad("the digest or the size of the weights is missing or wrong");
  }
  if (!model) return bad("names no weights");
  return *model;
}

std::vector<fs::path> ollama_folders() {
  if (const auto folder = env_string("OLLAMA_MODELS")) return {*folder};
  std::vector<fs::path> folders;
  if (const auto home = env_string("HOME")) folders.push_back(fs::path(*home) / ".ollama" / "models");
  folders.emplace_back(kServiceFolder);
  return folders;
}

Result<fs::path> find_ollama_model(std::string_view name, const std::vector<fs::path>& folders) {
  KVASIR_TRY(const ManifestPlace place, parse_ollama_name(name));
  for (const fs::path& folder : folders) {
    const fs::path manifest = folder / place.folder / place.tag;
    std::error_code ignored;
    if (!fs::is_regular_file(manifest, ignored)) continue;
    const auto json = read_text_file(manifest.native());
    if (!json) {
      return make_error(ErrorKind::kMachine,
                        fmt::format("{}: cannot be read", printable_line(manifest.native())));
    }
    KVASIR_TRY(const OllamaLayer layer, parse_ollama_manifest(*json, manifest.native()));
    return blob_of(folder, layer);
  }
  return make_error(ErrorKind::kNotFound,
                    fmt::format("{}: Ollama has no such model in {}{}", printable_line(name),
                                joined_paths(folders), tags_here(place, folders)));
}

}  // namespace kvasir::store
