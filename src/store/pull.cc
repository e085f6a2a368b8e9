// ModelStore::pull and pull_hub. Of the catalogue: lock, fetch into the staging folder, check, put in place.
#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "store/file_lock.h"
#include "store/hub/hub_name.h"
#include "store/hub/hub_settings.h"
#include "store/model_source.h"
#include "store/model_store.h"
#include "store/staged_model.h"
#include "store/store_folder.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

// An empty folder while it lives; what an earlier, killed pull left there goes first.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create(fs::path path) {
    ScratchFolder folder(std::move(path));
    folder.remove();
    KVASIR_CHECKED(make_store_folder(folder.path_));
    return folder;
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() { remove(); }

  const fs::path& path() const { return path_; }

 private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  void remove() const {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  fs::path path_;
};

// Says what a fetch needs and refuses to start one that cannot end well.
Status check_disk(const ModelSource& source, const CatalogueEntry& entry, const fs::path& folder,
                  const TransferEvents& events) {
  KVASIR_TRY(const std::int64_t available_bytes, free_bytes(folder));
  const std::string need = fmt::format("{} needs {} of disk while it is fetched and keeps {}; {} has {} free",
                                       entry.name, format_bytes(source.peak_disk_bytes()),
                                       format_bytes(entry.size_bytes), folder.native(),
                                       format_bytes(available_bytes));
  if (source.peak_disk_bytes() > available_bytes) return make_error(ErrorKind::kMachine, need);
  events.note(need);
  return {};
}

Status fetch_from(ModelSource& source, const CatalogueEntry& entry, const fs::path& final_path,
                  const fs::path& staging, const TransferEvents& events) {
  KVASIR_TRY(const ScratchFolder scratch, ScratchFolder::create(staging));
  KVASIR_CHECKED(check_disk(source, entry, final_path.parent_path(), events));
  events.note(fmt::format("source: {}; license: {}", source.description(), entry.license));
  KVASIR_TRY(StagedModel model, StagedModel::create(entry, scratch.path()));
  KVASIR_CHECKED(make_store_folder(scratch.path() / "parts"));
  KVASIR_CHECKED(source.fetch(model, scratch.path() / "parts", events));
  return model.publish(final_path);
}

Result<std::vector<Origin>> wanted_origins(const CatalogueEntry& entry, const PullOptions& options) {
  if (!options.from.empty()) return std::vector<Origin>{PathOrigin{options.from}};
  std::vector<Origin> origins;
  for (const Origin& origin : entry.origins) {
    if (options.source_type.empty() || options.source_type == type_of(origin)) origins.push_back(origin);
  }
  if (!origins.empty()) return origins;
  std::vector<std::string_view> known;
  for (const Origin& origin : entry.origins) known.push_back(type_of(origin));
  return make_error(ErrorKind::kUsage,
                    fmt::format("{} has no source of type {} (it has {}); a file of your own is --from FILE",
                                entry.name, printable(options.source_type), fmt::join(known, ", ")),
                    "--source");
}

}  // namespace

Result<PulledModel> ModelStore::pull(const CatalogueEntry& entry, const PullOptions& options,
                                     const TransferEvents& events) const {
  KVASIR_TRY(const std::vector<Origin> origins, wanted_origins(entry, options));
  const fs::path final_path = path_of(entry);
  const fs::path staging = home_ / "staging" / entry.file_name;
  KVASIR_CHECKED(make_store_folder(final_path.parent_path()));
  KVASIR_CHECKED(make_store_folder(staging.parent_path()));
  KVASIR_TRY(const FileLock lock, FileLock::acquire(staging.native() + ".lock", [&] {
               return events.progress({"waiting for another pull", 0, 0});
             }));
  if (!options.force) {
    KVASIR_TRY(const bool right, verify(entry, events));
    if (right) return PulledModel{final_path, true};
  }
  Error failure;
  for (std::size_t i = 0; i < origins.size(); ++i) {
    if (i > 0) events.note(fmt::format("{}; trying the next source", failure.message));
    const auto source = make_source(entry, origins[i]);
    const Status status = fetch_from(*source, entry, final_path, staging, events);
    if (status) return PulledModel{final_path, false};
    failure = status.error();
    if (failure.kind == ErrorKind::kCancelled) break;
  }
  return std::unexpected(failure);
}

Result<PulledHubModel> ModelStore::pull_hub(std::string_view model, const HubPullOptions& options,
                                            const TransferEvents& events) const {
  KVASIR_TRY(const HubName name, HubName::parse(model));
  KVASIR_TRY(const HubSettings settings, HubSettings::from_environment());
  return pull_from_hub(settings, name, home_, options, events);
}

}  // namespace kvasir::store
