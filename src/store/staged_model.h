// A model being received: one file, or the files of a folder, until all are whole and right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "store/catalogue.h"
#include "store/staged_file.h"

namespace kvasir::store {

// Thread safety: none. `entry` must outlive it.
class StagedModel {
 public:
  // Makes the files in the empty folder `scratch`. Errors: kMachine.
  static Result<StagedModel> create(const CatalogueEntry& entry, std::filesystem::path scratch);

  // As CatalogueEntry::all_files() has them.
  std::span<StagedFile> files() { return files_; }
  std::int64_t bytes_written() const;

  // Checks every file, then puts the model in place; a folder that was there goes. Errors: as StagedFile::publish.
  Status publish(const std::filesystem::path& final_path);

 private:
  StagedModel(const CatalogueEntry& entry, std::filesystem::path scratch)
      : entry_(entry), scratch_(std::move(scratch)) {}

  const CatalogueEntry& entry_;
  std::filesystem::path scratch_;
  std::vector<StagedFile> files_;
};

}  // namespace kvasir::store
