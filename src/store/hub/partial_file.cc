#include "store/hub/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/file_error.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIncomplete = ".incomplete";
constexpr std::string_view kPieces = ".pieces";
constexpr std::size_t kCountBytes = sizeof(std::int64_t);

fs::path fresh_partial_path(const fs::path& folder, const std::string& etag) {
  std::random_device random;
  return folder / fmt::format(".{}.{:08x}{}", etag, random(), kIncomplete);
}

std::vector<fs::path> partial_files(const fs::path& folder, const std::string& etag) {
  std::vector<fs::path> found;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().native();
    if (name.starts_with("." + etag + ".") && name.ends_with(kIncomplete)) found.push_back(it->path());
  }
  return found;
}

bool write_at(int fd, std::span<const std::byte> bytes, std::int64_t position) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), position);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    position += written;
  }
  return true;
}

std::string pieces_header(const PartialFile::Identity& identity, std::int64_t piece_bytes) {
  return fmt::format("kvasir-pieces-1 {} {} {} {}\n", identity.commit, identity.etag, identity.size_bytes,
                     piece_bytes);
}

}  // namespace

PartialFile::PartialFile(fs::path path, Identity identity, std::int64_t piece_bytes)
    : path_(std::move(path)), identity_(std::move(identity)), piece_bytes_(piece_bytes) {
  CHECK(piece_bytes_ > 0 && identity_.size_bytes >= 0);
  num_pieces_ = static_cast<std::int32_t>((identity_.size_bytes + piece_bytes_ - 1) / piece_bytes_);
  done_ = std::make_unique<std::atomic<std::int64_t>[]>(static_cast<std::size_t>(num_pieces_));
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)),
      identity_(std::move(other.identity_)),
      piece_bytes_(other.piece_bytes_),
      num_pieces_(other.num_pieces_),
      table_begin_(other.table_begin_),
      fd_(std::exchange(other.fd_, -1)),
      pieces_fd_(std::exchange(other.pieces_fd_, -1)),
      was_resumed_(other.was_resumed_),
      done_(std::move(other.done_)) {}

PartialFile::~PartialFile() {
  if (fd_ >= 0) ::close(fd_);
  if (pieces_fd_ >= 0) ::close(pieces_fd_);
}

Result<PartialFile> PartialFile::open(const fs::path& folder, const Identity& identity,
                                      std::int64_t piece_bytes) {
  for (const fs::path& found : partial_files(folder, identity.etag)) {
    // A name of our own: where locks do not work, another process may be writing under the old one.
    PartialFile file(fresh_partial_path(folder, identity.etag), identity, piece_bytes);
    if (::rename(found.c_str(), file.path_.c_str()) != 0) continue;
    const fs::path pieces = fs::path(found).replace_extension(kPieces);
    const bool has_pieces = ::rename(pieces.c_str(), file.pieces_path().c_str()) == 0;
    if (has_pieces) {
      KVASIR_TRY(const bool fits, file.open_existing());
      if (fits) return file;
    }
    file.discard();
  }
  PartialFile file(fresh_partial_path(folder, identity.etag), identity, piece_bytes);
  if (const Status status = file.create(); !status) {
    file.discard();
    return std::unexpected(status.error());
  }
  return file;
}

fs::path PartialFile::pieces_path() const { return fs::path(path_).replace_extension(kPieces); }

Result<bool> PartialFile::open_existing() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) return file_error(path_.native(), "open", errno);
  pieces_fd_ = ::open(pieces_path().c_str(), O_RDWR | O_CLOEXEC);
  if (pieces_fd_ < 0) return file_error(pieces_path().native(), "open", errno);
  struct stat status = {};
  if (::fstat(fd_, &status) != 0 || status.st_size != identity_.size_bytes) return false;
  const std::string header = pieces_header(identity_, piece_bytes_);
  table_begin_ = static_cast<std::int64_t>(header.size());
  const std::size_t table_bytes = static_cast<std::size_t>(num_pieces_) * kCountBytes;
  std::vector<char> content(header.size() + table_bytes + 1);
  const ssize_t count = ::pread(pieces_fd_, content.data(), content.size(), 0);
  if (count != static_cast<ssize_t>(header.size() + table_bytes)) return false;
  if (std::memcmp(content.data(), header.data(), header.size()) != 0) return false;
  for (std::int32_t piece = 0; piece < num_pieces_; ++piece) {
    std::int64_t done = 0;
    std::memcpy(&done, content.data() + header.size() + static_cast<std::size_t>(piece) * kCountBytes,
                kCountBytes);
    if (done < 0 || done > piece_end(piece) - piece_begin(piece)) return false;
    done_[piece].store(done, std::memory_order_relaxed);
  }
  was_resumed_ = bytes_done() > 0;
  return true;
}

Status PartialFile::create() {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) return file_error(path_.native(), "create", errno);
  const int reserved = identity_.size_bytes == 0 ? 0 : ::fallocate(fd_, 0, 0, identity_.size_bytes);
  if (reserved != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
    return file_error(path_.native(), "reserve", errno);
  if (::ftruncate(fd_, identity_.size_bytes) != 0) return file_error(path_.native(), "reserve", errno);
  pieces_fd_ = ::open(pieces_path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (pieces_fd_ < 0) return file_error(pieces_path().native(), "create", errno);
  return start_anew(false);
}

std::int64_t PartialFile::piece_end(std::int32_t piece) const {
  return std::min(identity_.size_bytes, piece_begin(piece) + piece_bytes_);
}

std::int64_t PartialFile::bytes_done() const {
  std::int64_t sum = 0;
  for (std::int32_t piece = 0; piece < num_pieces_; ++piece) sum += piece_done(piece);
  return sum;
}

Status PartialFile::write(std::int32_t piece, std::span<const std::byte> bytes) {
  const std::int64_t position = piece_begin(piece) + piece_done(piece);
  CHECK(position + static_cast<std::int64_t>(bytes.size()) <= piece_end(piece));
  if (!write_at(fd_, bytes, position)) return file_error(path_.native(), "write", errno);
  done_[piece].fetch_add(static_cast<std::int64_t>(bytes.size()), std::memory_order_relaxed);
  return record(piece);
}

Status PartialFile::record(std::int32_t piece) {
  const std::int64_t done = piece_done(piece);
  const std::int64_t position = table_begin_ + piece * static_cast<std::int64_t>(kCountBytes);
  if (write_at(pieces_fd_, std::as_bytes(std::span(&done, 1)), position)) return {};
  return file_error(pieces_path().native(), "write", errno);
}

Status PartialFile::start_anew(bool as_one_piece) {
  if (as_one_piece && identity_.size_bytes > 0) {
    piece_bytes_ = identity_.size_bytes;
    num_pieces_ = 1;
  }
  std::string content = pieces_header(identity_, piece_bytes_);
  table_begin_ = static_cast<std::int64_t>(content.size());
  content.resize(content.size() + static_cast<std::size_t>(num_pieces_) * kCountBytes, '\0');
  for (std::int32_t piece = 0; piece < num_pieces_; ++piece) done_[piece].store(0, std::memory_order_relaxed);
  was_resumed_ = false;
  if (::ftruncate(pieces_fd_, 0) == 0 && write_at(pieces_fd_, std::as_bytes(std::span(content)), 0))
    return {};
  return file_error(pieces_path().native(), "write", errno);
}

Status PartialFile::publish(const fs::path& final_path) {
  if (::fsync(fd_) != 0) return file_error(path_.native(), "write", errno);
  if (::rename(path_.c_str(), final_path.c_str()) != 0)
    return file_error(final_path.native(), "create", errno);
  std::error_code ignored;
  fs::remove(pieces_path(), ignored);
  return {};
}

void PartialFile::discard() {
  std::error_code ignored;
  fs::remove(path_, ignored);
  fs::remove(pieces_path(), ignored);
}

std::int64_t bytes_of_partial(const fs::path& folder, const std::string& etag) {
  std::int64_t sum = 0;
  for (const fs::path& path : partial_files(folder, etag)) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) == 0) sum += static_cast<std::int64_t>(status.st_blocks) * 512;
  }
  return sum;
}

}  // namespace kvasir::store
