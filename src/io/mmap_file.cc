#include "io/mmap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/printable.h"

namespace kvasir::io {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// The path's own fault, or that of a machine out of memory or descriptors.
std::unexpected<Error> system_error(const std::string& path, const char* action, int error_number) {
  constexpr int kUnusablePath[] = {ENOENT, ENOTDIR, ENAMETOOLONG, EACCES, EPERM, ELOOP};
  const bool unusable = std::ranges::find(kUnusablePath, error_number) != std::end(kUnusablePath);
  return make_error(
      unusable ? ErrorKind::kBadFile : ErrorKind::kMachine,
      fmt::format("{}: cannot {}: {}", printable_line(path), action, std::strerror(error_number)));
}

}  // namespace

Result<MmapFile> MmapFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; regular files ignore it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error(path, "open", errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return system_error(path, "read its size", errno);
  if (S_ISDIR(status.st_mode)) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: is a folder, not a file", printable_line(path)));
  }
  if (!S_ISREG(status.st_mode)) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: is not a regular file", printable_line(path)));
  }
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes == 0) return MmapFile(path, nullptr, 0);
  void* data = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return system_error(path, "map into memory", errno);
  return MmapFile(path, static_cast<const std::byte*>(data), size_bytes);
}

MmapFile::MmapFile(MmapFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MmapFile& MmapFile::operator=(MmapFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MmapFile::~MmapFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

void MmapFile::populate(std::span<const std::byte> range) {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  const std::uintptr_t first = begin / page * page;
  // Only a hint: without it every page comes when it is first read.
  if (!range.empty()) (void)::madvise(reinterpret_cast<void*>(first), begin - first + range.size(), MADV_POPULATE_READ);
#endif
}

void MmapFile::release_pages(std::span<const std::byte> range) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + range.size()) / page * page;
  if (first >= last) return;
  // The mapping is private and never written, so dropping its pages loses nothing; failure costs only memory.
  (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace kvasir::io
