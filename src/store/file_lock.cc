#include "store/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "store/file_error.h"

namespace kvasir::store {
namespace {

constexpr auto kRetryInterval = std::chrono::milliseconds(200);

}  // namespace

Result<FileLock> FileLock::acquire(const std::filesystem::path& path,
                                   const std::function<bool()>& keep_waiting) {
  FileLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) return file_error(path.native(), "create", errno);
  while (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return file_error(path.native(), "lock", errno);
    if (!keep_waiting()) return make_error(ErrorKind::kCancelled, "interrupted");
    std::this_thread::sleep_for(kRetryInterval);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace kvasir::store
