#include "store/staged_model.h"

#include <system_error>
#include <utility>

#include "store/file_error.h"
#include "store/store_folder.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArriving = "arriving";
constexpr const char* kChecked = "checked";

}  // namespace

Result<StagedModel> StagedModel::create(const CatalogueEntry& entry, fs::path scratch) {
  StagedModel model(entry, std::move(scratch));
  for (const CatalogueFile& file : entry.all_files()) {
    const fs::path path = model.scratch_ / kArriving / file.name;
    KVASIR_CHECKED(make_store_folder(path.parent_path()));
    KVASIR_TRY(StagedFile staged, StagedFile::create(path, file.size_bytes));
    model.files_.push_back(std::move(staged));
  }
  return model;
}

std::int64_t StagedModel::bytes_written() const {
  std::int64_t sum = 0;
  for (const StagedFile& file : files_) sum += file.bytes_written();
  return sum;
}

Status StagedModel::publish(const fs::path& final_path) {
  if (!entry_.is_folder()) return files_.front().publish(final_path, entry_.sha256);
  const fs::path checked = scratch_ / kChecked;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const CatalogueFile& file = entry_.files[i];
    KVASIR_CHECKED(make_store_folder((checked / file.name).parent_path()));
    KVASIR_CHECKED(files_[i].publish(checked / file.name, file.sha256));
  }
  std::error_code error;
  fs::remove_all(final_path, error);
  if (!error) fs::rename(checked, final_path, error);
  if (error) return file_error(final_path.native(), "create", error.value());
  return {};
}

}  // namespace kvasir::store
