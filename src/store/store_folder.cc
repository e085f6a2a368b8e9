#include "store/store_folder.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <system_error>

#include "store/file_error.h"

namespace kvasir::store {

Status make_store_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  // Whatever stands in the way, the user named no such file: it is the machine that cannot.
  return make_error(ErrorKind::kMachine,
                    file_error(folder.native(), "create", error.value()).error().message);
}

Result<std::int64_t> free_bytes(const std::filesystem::path& folder) {
  struct statvfs disk = {};
  if (::statvfs(folder.c_str(), &disk) != 0)
    return file_error(folder.native(), "ask for its free space", errno);
  return static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize);
}

}  // namespace kvasir::store
