// Fetches a model of the hub into the store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "store/hub/hub_name.h"
#include "store/hub/hub_settings.h"
#include "store/progress.h"

namespace kvasir::store {

struct HubPullOptions {
  bool force = false;    // fetch again what is here and right
  bool dry_run = false;  // only say what would be fetched
  bool to_cache = false;  // into the cache of the hub's own client, in its layout
};

struct PulledHubFile {
  std::filesystem::path path;
  std::int64_t size_bytes = 0;
  std::string sha256;  // empty for small files, which the hub names by git's hash
};

struct PulledHubModel {
  std::filesystem::path path;  // what opens the model: a GGUF file or a folder
  std::string commit;          // empty when HF_HUB_OFFLINE kept the hub from being asked
  std::string license;         // as the model's card says; may be empty
  bool was_present = false;    // nothing had to be fetched
  std::int64_t size_bytes = 0;
  std::vector<PulledHubFile> files;
};

// Layout below `home`: hub/models--OWNER--NAME/{snapshots/COMMIT/PATH, refs/REVISION, incomplete/}. A file
// appears in its snapshot only when its checksum is right. An unfinished one stays in incomplete/, and the
// next pull of the same commit goes on with it. A model whose files are all in the cache of the hub's own
// client is used from there. With to_cache that cache gets the files: as blobs/ETAG, with links in the snapshot.
// Errors: those of HubClient, select_files and HubDownload; kMachine (the disk); kBadFile (a wrong checksum).
Result<PulledHubModel> pull_from_hub(const HubSettings& settings, const HubName& name,
                                     const std::filesystem::path& home, const HubPullOptions& options,
                                     const TransferEvents& events);

}  // namespace kvasir::store
