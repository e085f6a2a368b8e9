// A model file that is already on this machine.
#pragma once

#include "store/model_source.h"

namespace kvasir::store {

// Copies the file, or the file of the entry's name when the path is a folder; of an entry that is a folder, its files.
// "~/" is the home folder.
class PathSource final : public ModelSource {
 public:
  PathSource(const CatalogueEntry& entry, const PathOrigin& origin);

  std::string description() const override { return path_.native(); }
  std::int64_t peak_disk_bytes() const override { return entry_.size_bytes; }
  Status fetch(StagedModel& model, const std::filesystem::path& scratch, const TransferEvents& events) override;

 private:
  Status copy(const std::filesystem::path& from, StagedFile& to, const StagedModel& model,
              const TransferEvents& events) const;

  const CatalogueEntry& entry_;
  std::filesystem::path path_;
};

}  // namespace kvasir::store
