#include "store/model_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/env.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "base/text_file.h"
#include "io/model_fingerprint.h"
#include "io/packed_copy.h"
#include "store/file_error.h"
#include "store/hub/hub_folder.h"
#include "store/hub/hub_settings.h"
#include "store/model_hint.h"
#include "store/ollama_models.h"
#include "store/staged_file.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::int64_t size_of(const fs::path& path) {
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(path, ignored);
  return size == static_cast<std::uintmax_t>(-1) ? 0 : static_cast<std::int64_t>(size);
}

// The entry whose part before the colon is nearest to the name; empty without one.
std::string_view nearest_family(std::string_view name, const std::vector<CatalogueEntry>& entries) {
  std::vector<std::string_view> families;
  for (const CatalogueEntry& entry : entries)
    families.push_back(std::string_view(entry.name).substr(0, entry.name.find(':')));
  const std::string_view family = nearest_name(name.substr(0, name.find(':')), families);
  const auto found = std::ranges::find(families, family);
  if (family.empty() || found == families.end()) return {};
  return entries[static_cast<std::size_t>(found - families.begin())].name;
}

std::vector<fs::path> files_with_extension(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().extension() == extension && is_file(it->path())) files.push_back(it->path());
  }
  std::ranges::sort(files);
  return files;
}

// A folder as the hub has it. What is wrong inside is said by whoever opens it.
Result<std::string> resolve_folder(std::string_view folder) {
  if (is_file(fs::path(folder) / "config.json")) {
    while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
    return std::string(folder);
  }
  const std::vector<fs::path> files = files_with_extension(fs::path(folder), ".gguf");
  const std::string hint = files.empty() ? "a model is a .gguf file, a folder with config.json and safetensors, or a "
                                           "name from `kvasir list`"
                                         : fmt::format("did you mean {}?", printable_line(files.front().native()));
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: is a folder without config.json; {}", printable_line(folder), hint));
}

// "; it is called X here"; empty when the text is like no other program's name.
std::string hint_of_foreign_name(std::string_view text) {
  const std::string name = name_of_foreign_model(text);
  if (!name.empty()) return fmt::format("; it is called {} here", printable_line(name));
  const bool is_address = text.starts_with("http://") || text.starts_with("https://");
  return is_address ? "; addresses are not fetched: download the file, or kvasir pull hf:OWNER/NAME" : "";
}

HubFolder hub_folder(const fs::path& home) { return HubFolder(home / "hub"); }

Result<std::string> resolve_ollama(std::string_view model) {
  KVASIR_TRY(const fs::path path, find_ollama_model(model, ollama_folders()));
  return path.native();
}

std::int64_t bytes_below(const fs::path& folder) {
  std::int64_t sum = 0;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (is_file(it->path())) sum += size_of(it->path());
  }
  return sum;
}

// From a removed file or folder up to `top`, which goes too when no snapshot is left in it.
void remove_empty_folders(fs::path path, const fs::path& top) {
  std::error_code error;
  if (fs::is_directory(path, error)) fs::remove(path, error);
  for (path = path.parent_path(); path != top && path.native().size() > top.native().size();
       path = path.parent_path()) {
    if (!fs::is_empty(path, error) || error) return;
    fs::remove(path, error);
  }
  fs::remove_all(top, error);  // "refs" alone is of no use
}

fs::path packed_folder(const fs::path& home) { return home / "packed"; }

std::vector<std::string> packed_copies_of(const fs::path& home, const fs::path& model) {
  std::error_code error;
  if (!fs::is_directory(packed_folder(home), error)) return {};
  const auto fingerprint = io::model_fingerprint(model.native());
  return fingerprint ? io::packed_copies_of(packed_folder(home).native(), *fingerprint) : std::vector<std::string>();
}

bool looks_like_path(std::string_view model) {
  return model.find('/') != model.npos || model.ends_with(".gguf") || model == "." || model == "..";
}

}  // namespace

Result<ModelStore> ModelStore::open(fs::path home) {
  KVASIR_TRY(Catalogue catalogue, Catalogue::parse(kBuiltInCatalogue, "built-in catalogue"));
  const fs::path own = home / "catalogue.toml";
  if (is_file(own)) {
    const auto text = read_text_file(own.native());
    if (!text) return file_error(own.native(), "read", EACCES);
    KVASIR_TRY(Catalogue additions, Catalogue::parse(*text, own.native()));
    KVASIR_CHECKED(catalogue.merge(std::move(additions), own.native()));
  }
  return ModelStore(std::move(home), std::move(catalogue));
}

Result<ModelStore> ModelStore::open_default() {
  KVASIR_TRY(fs::path home, default_home());
  return open(std::move(home));
}

Result<fs::path> ModelStore::default_home() {
  if (const auto home = env_string("KVASIR_HOME")) return fs::path(*home);
  if (const auto data = env_string("XDG_DATA_HOME")) return fs::path(*data) / "kvasir";
  if (const auto home = env_string("HOME")) return fs::path(*home) / ".local" / "share" / "kvasir";
  return make_error(ErrorKind::kMachine, "no folder for models: set KVASIR_HOME (HOME is not set either)");
}

Result<const CatalogueEntry*> ModelStore::find(std::string_view name) const {
  if (const CatalogueEntry* entry = catalogue_.find(name)) return entry;
  if (is_ollama_name(name)) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("{0} is a model of Ollama, which fetches it; then kvasir run {0}", printable_line(name)));
  }
  std::error_code ignored;
  if (fs::exists(fs::path(name), ignored)) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("{0} is a path, the store has names; a path is used as it is: kvasir run {0}",
                                  printable_line(name)));
  }
  if (const std::string hint = hint_of_foreign_name(name); !hint.empty()) {
    return make_error(ErrorKind::kNotFound, fmt::format("no model is called '{}'{}", printable_line(name), hint));
  }
  std::vector<std::string_view> names;
  for (const CatalogueEntry& entry : catalogue_.entries()) names.push_back(entry.name);
  std::string_view nearest = nearest_name(name, names);
  if (nearest.empty()) nearest = nearest_family(name, catalogue_.entries());
  const std::string hint = nearest.empty() ? fmt::format("known are {}, and hf:OWNER/NAME of the hub", fmt::join(names, ", "))
                                           : fmt::format("did you mean {}?", nearest);
  return make_error(ErrorKind::kNotFound,
                    fmt::format("no model is called '{}'; {}", printable_line(name), hint));
}

bool ModelStore::is_present(const CatalogueEntry& entry) const {
  return std::ranges::all_of(entry.all_files(),
                             [&](const CatalogueFile& file) { return is_file(path_of(entry, file)); });
}

std::vector<StoredModel> ModelStore::list() const {
  std::vector<StoredModel> models;
  for (const CatalogueEntry& entry : catalogue_.entries()) {
    const fs::path path = path_of(entry);
    const bool present = is_present(entry);
    const std::int64_t size_bytes = entry.is_folder() ? bytes_below(path) : size_of(path);
    models.push_back({entry.name, path, present ? size_bytes : entry.size_bytes, present, &entry,
                      ModelOrigin::kCatalogue});
  }
  for (const fs::path& path : files_with_extension(home_ / "models", ".gguf")) {
    if (std::ranges::find(models, path, &StoredModel::path) != models.end()) continue;
    models.push_back({path.filename().native(), path, size_of(path), true, nullptr, ModelOrigin::kOwnFile});
  }
  const auto append = [&](const HubFolder& folder, ModelOrigin origin) {
    for (const HubModelHere& model : folder.list()) {
      models.push_back({model.name.text(), model.path, model.size_bytes, true, nullptr, origin});
    }
  };
  append(hub_folder(home_), ModelOrigin::kHub);
  append(HubFolder(hub_cache_folder()), ModelOrigin::kHubCache);
  for (StoredModel& model : models) {
    if (!model.present) continue;
    for (const std::string& copy : packed_copies_of(home_, model.path)) model.packed_bytes += size_of(copy);
  }
  return models;
}

std::string_view name_of(ModelOrigin origin) {
  constexpr std::string_view kNames[] = {"catalogue", "file", "hub", "hub_cache"};
  return kNames[static_cast<std::size_t>(origin)];
}

Result<std::string> ModelStore::resolve_hub(std::string_view model) const {
  KVASIR_TRY(const HubName name, HubName::parse(model));
  for (const HubFolder& folder : {hub_folder(home_), HubFolder(hub_cache_folder())}) {
    if (const auto found = folder.find(name)) return found->path.native();
  }
  return make_error(ErrorKind::kNotFound,
                    fmt::format("{0} is not here yet; get it with: kvasir pull {0}", name.text()));
}

Result<std::string> ModelStore::resolve(std::string_view model) const {
  if (HubName::matches(model)) return resolve_hub(model);
  if (is_ollama_name(model)) return resolve_ollama(model);
  if (const CatalogueEntry* entry = catalogue_.find(model)) {
    if (!is_present(*entry)) {
      return make_error(ErrorKind::kNotFound,
                        fmt::format("{0} is not here yet; get it with: kvasir pull {0}", model));
    }
    for (const CatalogueFile& file : entry->all_files()) {
      const fs::path path = path_of(*entry, file);
      if (size_of(path) == file.size_bytes) continue;
      return make_error(ErrorKind::kBadFile,
                        fmt::format("{}: has {} bytes instead of {}; repair it with: kvasir pull {}",
                                    printable_line(path.native()), size_of(path), file.size_bytes, model));
    }
    return path_of(*entry).native();
  }
  std::error_code error;
  const fs::file_status status = fs::status(fs::path(model), error);
  if (fs::is_directory(status)) return resolve_folder(model);
  if (fs::exists(status)) return std::string(model);
  if (looks_like_path(model)) {
    const bool is_missing = !error || error.value() == ENOENT;
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: {}{}", printable_line(model), is_missing ? "no such file" : error.message(),
                                  hint_of_foreign_name(model)));
  }
  return std::unexpected(find(model).error());
}

Result<bool> ModelStore::verify(const CatalogueEntry& entry, const TransferEvents& events) const {
  std::int64_t bytes_before = 0;
  for (const CatalogueFile& file : entry.all_files()) {
    const fs::path path = path_of(entry, file);
    if (!is_file(path) || size_of(path) != file.size_bytes) return false;
    KVASIR_TRY(const std::string sha256, hash_file(path, [&](std::int64_t bytes_done) {
                 return events.progress({"checking", bytes_before + bytes_done, entry.size_bytes});
               }));
    if (sha256 != file.sha256) return false;
    bytes_before += file.size_bytes;
  }
  return true;
}

std::vector<std::string> ModelStore::damaged_copies(const StoredModel& model) const {
  std::vector<std::string> lines;
  if (!model.present) return lines;
  for (const std::string& copy : packed_copies_of(home_, model.path)) {
    const Status sound = io::verify_packed_copy(copy);
    if (!sound) lines.push_back(fmt::format("{}: {}", printable_line(copy), sound.error().message));
  }
  return lines;
}

Result<StoredModel> ModelStore::remove_hub(std::string_view model) const {
  KVASIR_TRY(const HubName name, HubName::parse(model));
  const HubFolder ours = hub_folder(home_);
  const fs::path repository = ours.repository(name);
  const auto found = ours.find(name);
  std::error_code error;
  const bool is_repository = name.revision.empty() && name.file.empty();
  if (is_repository && fs::is_directory(repository, error)) {
    StoredModel removed{name.text(), repository, bytes_below(repository), true, nullptr, ModelOrigin::kHub};
    fs::remove_all(repository, error);
    if (error) return file_error(repository.native(), "remove", error.value());
    return removed;
  }
  if (found) {
    for (const fs::path& file : found->files) {
      fs::remove(file, error);
      if (error) return file_error(file.native(), "remove", error.value());
    }
    remove_empty_folders(found->path, repository);
    return StoredModel{name.text(), found->path, found->size_bytes, true, nullptr, ModelOrigin::kHub};
  }
  if (const auto in_cache = HubFolder(hub_cache_folder()).find(name)) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("{} is in the cache of the hub's own client, which is only read here: {}",
                                  name.text(), printable_line(in_cache->path.native())));
  }
  return make_error(ErrorKind::kNotFound, fmt::format("{} is not in the store", name.text()));
}

Result<StoredModel> ModelStore::remove(std::string_view name) const {
  KVASIR_TRY(StoredModel removed, remove_files(name));
  removed.packed_bytes = io::remove_orphaned_copies(packed_folder(home_).native());
  return removed;
}

Result<StoredModel> ModelStore::remove_files(std::string_view name) const {
  if (HubName::matches(name)) return remove_hub(name);
  if (is_ollama_name(name)) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("{} belongs to Ollama; remove it with: ollama rm {}", printable_line(name),
                                  printable_line(name.substr(7))));
  }
  const std::vector<StoredModel> models = list();
  const auto model = std::ranges::find(models, name, &StoredModel::name);
  if (model == models.end()) return std::unexpected(find(name).error());
  if (!model->present)
    return make_error(ErrorKind::kNotFound, fmt::format("{} is not in the store", model->name));
  std::error_code error;
  fs::remove_all(model->path, error);
  if (error) return file_error(model->path.native(), "remove", error.value());
  return *model;
}

std::string packed_cache_of(const std::string& model_path) {
  const auto home = ModelStore::default_home();
  std::error_code error;
  const fs::path path = fs::absolute(model_path, error).lexically_normal();
  if (!home || error) return {};
  const fs::path relative = path.lexically_relative(fs::absolute(*home, error).lexically_normal());
  if (error || relative.empty() || *relative.begin() == "..") return {};
  return packed_folder(*home).native();
}

Result<std::string> resolve_model(const std::string& model) {
  if (is_ollama_name(model)) return resolve_ollama(model);
  const auto models = ModelStore::open_default();
  if (models) return models->resolve(model);
  // A file needs no store, and without HOME there is none.
  if (is_file(model)) return model;
  if (std::error_code ignored; fs::is_directory(model, ignored)) return resolve_folder(model);
  return std::unexpected(models.error());
}

}  // namespace kvasir::store
