#include "store/hub/hub_pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "base/text_file.h"
#include "base/units.h"
#include "store/file_error.h"
#include "store/file_lock.h"
#include "store/hub/git_blob_hash.h"
#include "store/hub/hub_client.h"
#include "store/hub/hub_download.h"
#include "store/hub/hub_folder.h"
#include "store/hub/hub_selection.h"
#include "store/hub/partial_file.h"
#include "store/staged_file.h"
#include "store/store_folder.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

// A pull while it runs: the model at one commit.
class HubPull {
 public:
  HubPull(const HubSettings& settings, const HubName& name, const fs::path& home, bool to_cache,
          const TransferEvents& events)
      : settings_(settings),
        name_(name),
        ours_(home / "hub"),
        cache_(settings.cache),
        to_cache_(to_cache),
        events_(events) {}

  // Asks the hub for the commit and its files.
  Status select() {
    HubClient client(settings_, [this] { return events_.progress({"asking the hub", 0, 0}); });
    KVASIR_TRY(commit_, client.resolve_revision(name_));
    KVASIR_TRY(const std::vector<HubFile> files, client.list_files(name_, commit_.sha));
    std::vector<std::string> paths;
    for (const HubFile& file : files) paths.push_back(file.path);
    KVASIR_TRY(HubSelection selection, select_files(name_, paths));
    const auto listed = [&](const std::string& path) {
      return std::ranges::find(files, path, &HubFile::path);
    };
    if (!selection.index_path.empty()) {
      KVASIR_TRY(const std::string index,
                 client.read_file(name_, commit_.sha, *listed(selection.index_path)));
      KVASIR_CHECKED(add_shards(name_, index, paths, selection));
    }
    model_path_ = selection.model_path;
    for (const std::string& path : selection.paths) files_.push_back(*listed(path));
    return {};
  }

  // Whether all files are in a folder, with the right content.
  Result<bool> is_whole_in(const HubFolder& folder) {
    if (folder.root().empty()) return false;
    const fs::path snapshot = folder.snapshot(name_, commit_.sha);
    for (const HubFile& file : files_) {
      if (!has_right_size(snapshot / file.path, file)) return false;
    }
    for (const HubFile& file : files_) {
      KVASIR_TRY(const bool is_right, has_right_content(snapshot / file.path, file));
      if (!is_right) return false;
    }
    return true;
  }

  // Fetches those that are not there, or all.
  Status fetch(bool all) {
    std::vector<const HubFile*> missing;
    for (const HubFile& file : files_) {
      bool is_there = !all && has_right_size(snapshot() / file.path, file);
      if (is_there) {
        KVASIR_TRY(is_there, has_right_content(snapshot() / file.path, file));
      }
      if (!is_there) missing.push_back(&file);
    }
    KVASIR_CHECKED(make_store_folder(incomplete()));
    KVASIR_CHECKED(check_room(missing));
    bytes_total_ = 0;
    for (const HubFile* file : missing) bytes_total_ += file->size_bytes;
    for (const HubFile* file : missing) {
      KVASIR_CHECKED(fetch_file(*file));
      bytes_before_ += file->size_bytes;
    }
    std::error_code ignored;
    fs::remove_all(incomplete(), ignored);
    return {};
  }

  // So that the revision is known without the hub.
  Status remember_revision() const {
    if (is_commit(name_.revision)) return {};
    const fs::path path = target().repository(name_) / "refs" / name_.revision_or_main();
    KVASIR_CHECKED(make_store_folder(path.parent_path()));
    return replace_text_file(path.native(), commit_.sha);
  }

  PulledHubModel result(const HubFolder& folder, bool was_present) const {
    const fs::path place = folder.snapshot(name_, commit_.sha);
    PulledHubModel pulled;
    pulled.path = model_path_.empty() ? place : place / model_path_;
    pulled.commit = commit_.sha;
    pulled.license = commit_.license;
    pulled.was_present = was_present;
    for (const HubFile& file : files_) {
      pulled.files.push_back({place / file.path, file.size_bytes, file.is_lfs ? file.etag : std::string()});
      pulled.size_bytes += file.size_bytes;
    }
    return pulled;
  }

  // Where files go.
  const HubFolder& target() const { return to_cache_ ? cache_ : ours_; }
  const HubFolder& ours() const { return ours_; }
  const HubFolder& cache() const { return cache_; }

 private:
  fs::path snapshot() const { return target().snapshot(name_, commit_.sha); }
  fs::path incomplete() const { return target().repository(name_) / "incomplete"; }

  static bool has_right_size(const fs::path& path, const HubFile& file) {
    std::error_code error;
    const bool is_file = fs::is_regular_file(path, error);
    return is_file && fs::file_size(path, error) == static_cast<std::uintmax_t>(file.size_bytes) && !error;
  }

  Result<std::string> checksum_of(const fs::path& path, const HubFile& file) const {
    const auto on_bytes = [&](std::int64_t bytes_done) {
      return events_.progress({"checking", bytes_done, file.size_bytes});
    };
    return file.is_lfs ? hash_file(path, on_bytes) : git_blob_hash(path, on_bytes);
  }

  Result<bool> has_right_content(const fs::path& path, const HubFile& file) const {
    KVASIR_TRY(const std::string checksum, checksum_of(path, file));
    return checksum == file.etag;
  }

  // Says what is fetched, and refuses to start what cannot end well.
  Status check_room(const std::vector<const HubFile*>& missing) const {
    std::int64_t needed = 0;
    std::int64_t fetched = 0;
    for (const HubFile* file : missing) {
      needed += std::max<std::int64_t>(0, file->size_bytes - bytes_of_partial(incomplete(), file->etag));
      fetched += file->size_bytes;
    }
    const fs::path repository = target().repository(name_);
    KVASIR_TRY(const std::int64_t free, free_bytes(repository));
    const std::string need = fmt::format("{} at {}: {} in {} file{}; {} has {} free", name_.repository(),
                                         commit_.sha.substr(0, 7), format_bytes(fetched), missing.size(),
                                         missing.size() == 1 ? "" : "s", repository.native(),
                                         format_bytes(free));
    if (needed > free) return make_error(ErrorKind::kMachine, need);
    events_.note(need);
    if (!commit_.license.empty()) events_.note(fmt::format("license: {}", printable(commit_.license)));
    return {};
  }

  Status fetch_file(const HubFile& file) {
    const fs::path place = snapshot() / file.path;
    KVASIR_CHECKED(make_store_folder(place.parent_path()));
    KVASIR_TRY(PartialFile partial,
               PartialFile::open(incomplete(), {commit_.sha, file.etag, file.size_bytes}));
    while (true) {
      const bool was_resumed = partial.was_resumed();
      HubDownload download(settings_, name_, commit_.sha, file, partial);
      KVASIR_CHECKED(download.run([this](std::int64_t bytes_done) {
        return events_.progress({"downloading", bytes_before_ + bytes_done, bytes_total_});
      }));
      KVASIR_TRY(const std::string checksum, checksum_of(partial.path(), file));
      if (checksum == file.etag) return to_cache_ ? publish_as_blob(partial, file, place) : partial.publish(place);
      if (was_resumed) {  // the earlier bytes may be what is wrong
        KVASIR_CHECKED(partial.start_anew(false));
        continue;
      }
      partial.discard();
      return make_error(ErrorKind::kBadFile,
                        fmt::format("{}: {}: the checksum of what arrived is {}, the hub says {}",
                                    name_.repository(), printable_line(file.path), checksum, file.etag));
    }
  }

  // The content under its checksum, and a link to it under its path.
  Status publish_as_blob(PartialFile& partial, const HubFile& file, const fs::path& place) const {
    const fs::path blob = target().repository(name_) / "blobs" / file.etag;
    KVASIR_CHECKED(make_store_folder(blob.parent_path()));
    KVASIR_CHECKED(partial.publish(blob));
    std::error_code failure;
    fs::remove(place, failure);
    fs::create_symlink(blob.lexically_relative(place.parent_path()), place, failure);
    if (!failure) return {};
    return make_error(ErrorKind::kMachine, file_error(place.native(), "create", failure.value()).error().message);
  }

  const HubSettings& settings_;
  const HubName& name_;
  HubFolder ours_;
  HubFolder cache_;
  const bool to_cache_;
  const TransferEvents& events_;
  HubCommit commit_;
  std::string model_path_;
  std::vector<HubFile> files_;
  std::int64_t bytes_before_ = 0;  // of files that are finished
  std::int64_t bytes_total_ = 0;
};

Result<PulledHubModel> find_offline(const HubPull& pull, const HubName& name) {
  for (const HubFolder* folder : {&pull.ours(), &pull.cache()}) {
    const auto model = folder->find(name);
    if (!model) continue;
    PulledHubModel pulled{.path = model->path, .was_present = true, .size_bytes = model->size_bytes};
    for (const fs::path& file : model->files) {
      std::error_code ignored;
      pulled.files.push_back({file, static_cast<std::int64_t>(fs::file_size(file, ignored)), ""});
    }
    return pulled;
  }
  return make_error(ErrorKind::kNotFound,
                    fmt::format("{} is not on this machine, and HF_HUB_OFFLINE is set", name.text()));
}

}  // namespace

Result<PulledHubModel> pull_from_hub(const HubSettings& settings, const HubName& name, const fs::path& home,
                                     const HubPullOptions& options, const TransferEvents& events) {
  if (options.to_cache && settings.cache.empty()) {
    return make_error(ErrorKind::kMachine, "no folder for the hub's cache: set HF_HOME (HOME is not set either)");
  }
  HubPull pull(settings, name, home, options.to_cache, events);
  if (settings.offline) return find_offline(pull, name);
  KVASIR_CHECKED(pull.select());
  if (options.dry_run) {
    KVASIR_TRY(const bool is_whole, pull.is_whole_in(pull.target()));
    return pull.result(pull.target(), is_whole);
  }
  const fs::path staging = home / "staging";
  KVASIR_CHECKED(make_store_folder(staging));
  const std::string lock_name = fmt::format("hub--{}--{}.lock", name.owner, name.name);
  KVASIR_TRY(const FileLock lock, FileLock::acquire(staging / lock_name, [&] {
               return events.progress({"waiting for another pull", 0, 0});
             }));
  if (!options.force) {
    std::vector<const HubFolder*> folders = {&pull.target()};
    if (!options.to_cache) folders.push_back(&pull.cache());
    for (const HubFolder* folder : folders) {
      KVASIR_TRY(const bool is_whole, pull.is_whole_in(*folder));
      if (!is_whole) continue;
      if (folder == &pull.target()) KVASIR_CHECKED(pull.remember_revision());
      return pull.result(*folder, true);
    }
  }
  KVASIR_CHECKED(pull.fetch(options.force));
  KVASIR_CHECKED(pull.remember_revision());
  return pull.result(pull.target(), false);
}

}  // namespace kvasir::store
