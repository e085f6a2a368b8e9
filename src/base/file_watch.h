// Files that are read again when they change.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/file_stamp.h"

namespace kvasir {

// Looks at most twice a second. A file that cannot be used as it is now is tried again each time, as the
// reason may lie elsewhere, and is worth one warning.
//
// Thread safety: none.
class FileWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The files as they are now count as accepted: the caller is about to read them.
  explicit FileWatch(std::vector<std::string> paths);

  // Whether there is something to read that was not accepted.
  bool has_changed(TimePoint now);
  // The file that has_changed() saw is in use.
  void accept() { accepted_ = tried_ = seen_; }
  // It cannot be used. True the first time.
  bool reject();

 private:
  std::vector<FileStamp> stamps() const;

  const std::vector<std::string> paths_;
  std::vector<FileStamp> seen_, accepted_, tried_;
  TimePoint looked_;
};

}  // namespace kvasir
