// Models of the hub that are on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "store/hub/hub_name.h"

namespace kvasir::store {

// A model in such a folder, whole.
struct HubModelHere {
  HubName name;                // finds the model again
  std::filesystem::path path;  // a GGUF file, the first of its set, or a folder with config.json
  std::vector<std::filesystem::path> files;
  std::int64_t size_bytes = 0;  // of all files
};

// A folder as the hub's own client keeps its cache: models--OWNER--NAME/{refs/REVISION,
// snapshots/COMMIT/PATH}. The files of a snapshot may be links. Kvasir's own folder has the same layout, with
// plain files.
//
// Thread safety: reads only; any thread.
class HubFolder {
 public:
  explicit HubFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path repository(const HubName& name) const;
  std::filesystem::path snapshot(const HubName& name, const std::string& commit) const;
  // The commit that a revision was when it was fetched last; empty when that is not known.
  std::string commit_of(const HubName& name) const;

  // The whole model that a name means. Without a revision it may be of any commit, the newest first.
  std::optional<HubModelHere> find(const HubName& name) const;
  std::vector<HubModelHere> list() const;

 private:
  std::vector<std::string> commits_of(const HubName& name) const;
  std::vector<HubModelHere> models_of_snapshot(const HubName& name, const std::string& commit) const;

  std::filesystem::path root_;
};

}  // namespace kvasir::store
