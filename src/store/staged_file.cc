#include "store/staged_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/units.h"
#include "store/file_error.h"

namespace kvasir::store {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;

}  // namespace

Result<StagedFile> StagedFile::create(std::filesystem::path path, std::int64_t expected_bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return file_error(path.native(), "create", errno);
  return StagedFile(std::move(path), fd, expected_bytes);
}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      expected_bytes_(other.expected_bytes_),
      bytes_written_(other.bytes_written_),
      hash_(std::move(other.hash_)) {}

StagedFile::~StagedFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

Status StagedFile::write(std::span<const std::byte> bytes) {
  const auto room = static_cast<std::uint64_t>(expected_bytes_ - bytes_written_);
  if (bytes.size() > room) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: more than the expected {} bytes arrived",
                                  printable_line(path_.filename().native()), expected_bytes_));
  }
  hash_.update(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error(path_.native(), "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    bytes_written_ += written;
  }
  return {};
}

Status StagedFile::publish(const std::filesystem::path& final_path, const std::string& expected_sha256) {
  const std::string name = printable_line(final_path.filename().native());
  if (bytes_written_ != expected_bytes_) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: {} bytes arrived, the catalogue says {}", name,
                                                       bytes_written_, expected_bytes_));
  }
  const std::string sha256 = hash_.hex_digest();
  if (sha256 != expected_sha256) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: SHA-256 is {}, the catalogue says {}", name, sha256, expected_sha256));
  }
  if (::fsync(fd_) != 0) return file_error(path_.native(), "write", errno);
  if (::rename(path_.c_str(), final_path.c_str()) != 0)
    return file_error(final_path.native(), "create", errno);
  ::close(std::exchange(fd_, -1));
  return {};
}

Result<std::string> hash_file(const std::filesystem::path& path,
                              const std::function<bool(std::int64_t)>& on_bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return file_error(path.native(), "open", errno);
  std::vector<std::byte> buffer(kReadBytes);
  Sha256 hash;
  std::int64_t bytes_done = 0;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    hash.update({buffer.data(), count});
    bytes_done += static_cast<std::int64_t>(count);
    if (!on_bytes(bytes_done)) return make_error(ErrorKind::kCancelled, "interrupted");
  }
  if (std::ferror(file.get()) != 0) return file_error(path.native(), "read", errno);
  return hash.hex_digest();
}

}  // namespace kvasir::store
