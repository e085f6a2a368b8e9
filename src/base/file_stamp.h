// Which version of a file is there, to see that it changed.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir {

// All 0: there is none.
struct FileStamp {
  std::int64_t inode = 0, bytes = 0, changed_ns = 0;

  static FileStamp of(const std::string& path);
  bool operator==(const FileStamp&) const = default;
};

}  // namespace kvasir
