#include "base/file_stamp.h"

#include <sys/stat.h>

namespace kvasir {

FileStamp FileStamp::of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {.inode = static_cast<std::int64_t>(status.st_ino),
          .bytes = status.st_size,
          .changed_ns = status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec};
}

}  // namespace kvasir
