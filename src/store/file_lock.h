// One process at a time does a piece of work.
#pragma once

#include <filesystem>
#include <functional>

#include "kvasir/result.h"

namespace kvasir::store {

// Holds an exclusive lock on a file until it is destroyed; the system releases it when the process dies. The
// file itself stays, for removing it would race with a process that is about to lock it.
class FileLock {
 public:
  // Creates `path` if needed and waits for its lock. `keep_waiting` is called about five times a second while
  // another process has it; false ends the wait with kCancelled. Errors: kMachine when the file cannot be
  // made.
  static Result<FileLock> acquire(const std::filesystem::path& path,
                                  const std::function<bool()>& keep_waiting);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace kvasir::store
