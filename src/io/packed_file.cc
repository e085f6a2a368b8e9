#include "io/packed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "io/byte_cursor.h"

namespace kvasir::io {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMaxLabelBytes = 1900;  // of each of two texts
constexpr std::size_t kSampleBytes = 4096;    // at the begin, the middle and the end of a matrix
constexpr std::uint64_t kMaxEntryKeyBytes = 1024;
constexpr std::int64_t kLeftFreeBytes = std::int64_t{256} << 20;  // of the disk, for others
constexpr std::array<char, 8> kMagic = {'K', 'V', 'P', 'A', 'C', 'K', 'E', 'D'};

struct PackedHeader {
  std::array<char, 8> magic = kMagic;
  std::uint32_t layout_version = kPackedLayoutVersion;
  std::uint32_t identity_bytes = 0, model_path_bytes = 0, unused = 0;
  std::uint64_t file_bytes = 0, table_offset = 0, num_entries = 0, table_hash = 0;
  std::uint64_t hash = 0;  // of the page, with 0 here
  std::array<char, kMaxLabelBytes> identity{}, model_path{};
};
static_assert(sizeof(PackedHeader) <= kPageBytes);

using HeaderPage = std::array<std::byte, kPageBytes>;

std::span<const std::byte> memory_bytes(const void* data, std::size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

HeaderPage page_of(PackedHeader header) {
  HeaderPage page{};
  header.hash = 0;
  std::memcpy(page.data(), &header, sizeof header);
  const std::uint64_t hash = hash_bytes(page);
  std::memcpy(page.data() + offsetof(PackedHeader, hash), &hash, sizeof hash);
  return page;
}

std::unexpected<Error> unusable(std::string problem) { return make_error(ErrorKind::kBadFile, std::move(problem)); }

Result<PackedHeader> read_header(std::span<const std::byte> file) {
  if (file.size() < kPageBytes) return unusable(fmt::format("ends inside the header ({} bytes)", file.size()));
  PackedHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != kMagic) return unusable("is no packed copy of weights");
  if (header.layout_version != kPackedLayoutVersion) {
    return unusable(fmt::format("has layout version {}, this program reads {}", header.layout_version, kPackedLayoutVersion));
  }
  const HeaderPage expected = page_of(header);
  if (!std::ranges::equal(expected, file.first(kPageBytes))) return unusable("has a damaged header");
  if (header.identity_bytes > kMaxLabelBytes || header.model_path_bytes > kMaxLabelBytes) {
    return unusable("has a damaged header");
  }
  return header;
}

std::uint64_t sample_hash_of(std::span<const std::byte> bytes) {
  const std::size_t size = std::min(kSampleBytes, bytes.size());
  const std::size_t starts[] = {0, (bytes.size() - size) / 2, bytes.size() - size};
  std::uint64_t hash = bytes.size();
  for (const std::size_t start : starts) hash = hash_bytes(bytes.subspan(start, size), hash);
  return hash;
}

std::unexpected<Error> disk_error(const std::string& path, const char* action, int error_number) {
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: cannot {}: {}", printable_line(path), action, std::strerror(error_number)));
}

Status check_room(const std::filesystem::path& folder, std::int64_t expected_bytes) {
  struct statvfs disk = {};
  if (::statvfs(folder.c_str(), &disk) != 0) return disk_error(folder.native(), "ask for its free space", errno);
  const auto free = static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize);
  if (free - kLeftFreeBytes >= expected_bytes) return {};
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: {} of packed weights and {} to spare are needed, {} are free",
                                printable_line(folder.native()), format_bytes(expected_bytes),
                                format_bytes(kLeftFreeBytes), format_bytes(free)));
}

// Whether `path` still leads to the opened file: another process may have renamed it meanwhile.
bool is_file_at(int fd, const std::string& path) {
  struct stat opened = {}, there = {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

}  // namespace

// Four lanes of words, so that one multiplication need not wait for the other. Every step is a bijection of the lane
// and of the word, so that no change of a single word is lost.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;
  constexpr int kTurn = 29;
  std::array<std::uint64_t, 4> lanes = {seed, seed + 1, seed + 2, seed + 3};
  const auto mix = [](std::uint64_t& lane, std::uint64_t word) {
    lane = std::rotl((lane ^ word) * kFactor, kTurn);
  };
  std::size_t at = 0;
  for (; at + sizeof lanes <= bytes.size(); at += sizeof lanes) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data() + at, sizeof words);
    for (std::size_t i = 0; i < lanes.size(); ++i) mix(lanes[i], words[i]);
  }
  std::array<std::uint64_t, 4> rest{};
  if (at < bytes.size()) std::memcpy(rest.data(), bytes.data() + at, bytes.size() - at);
  for (std::size_t i = 0; i < lanes.size(); ++i) mix(lanes[i], rest[i]);
  std::uint64_t hash = bytes.size();
  for (const std::uint64_t lane : lanes) mix(hash, lane);
  return hash;
}

Result<PackedFileLabel> PackedFile::read_label(const std::string& path) {
  KVASIR_TRY(const MmapFile file, MmapFile::open(path));
  KVASIR_TRY(const PackedHeader header, read_header(file.bytes()));
  return PackedFileLabel{.identity = std::string(header.identity.data(), header.identity_bytes),
                         .model_path = std::string(header.model_path.data(), header.model_path_bytes)};
}

Result<PackedFile> PackedFile::open(const std::string& path, std::string_view identity) {
  KVASIR_TRY(MmapFile mapped, MmapFile::open(path));
  const std::span<const std::byte> file = mapped.bytes();
  KVASIR_TRY(const PackedHeader header, read_header(file));
  if (std::string_view(header.identity.data(), header.identity_bytes) != identity) {
    return unusable("was made of another version of the model");
  }
  if (header.file_bytes != file.size() || header.table_offset > file.size()) {
    return unusable(fmt::format("has {} bytes instead of {}", file.size(), header.file_bytes));
  }
  const std::span<const std::byte> table = file.subspan(header.table_offset);
  if (hash_bytes(table) != header.table_hash) return unusable("has a damaged table");
  PackedFile packed(std::move(mapped));
  KVASIR_CHECKED(packed.read_table(table, header.num_entries));
  return packed;
}

Status PackedFile::read_table(std::span<const std::byte> table, std::uint64_t num_entries) {
  const std::span<const std::byte> file = file_.bytes();
  ByteCursor cursor(table);
  for (std::uint64_t i = 0; i < num_entries; ++i) {
    const auto key_bytes = cursor.take<std::uint64_t>();
    const auto key = cursor.take_text(key_bytes.value_or(~std::uint64_t{0}));
    const auto offset = cursor.take<std::uint64_t>(), num_bytes = cursor.take<std::uint64_t>();
    const auto sample_hash = cursor.take<std::uint64_t>(), hash = cursor.take<std::uint64_t>();
    if (!key || !hash || *offset % kPageBytes != 0 || *offset > file.size() || *num_bytes > file.size() - *offset) {
      return unusable("has a damaged table");
    }
    const Entry entry{file.subspan(*offset, *num_bytes), *sample_hash, *hash};
    if (sample_hash_of(entry.bytes) != entry.sample_hash) {
      return unusable(fmt::format("has damaged weights ({})", printable(*key)));
    }
    entries_.emplace(*key, entry);
  }
  return {};
}

std::span<const std::byte> PackedFile::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::span<const std::byte>() : found->second.bytes;
}

Status PackedFile::verify() const {
  for (const auto& [key, entry] : entries_) {
    if (hash_bytes(entry.bytes) != entry.hash) return unusable(fmt::format("has damaged weights ({})", printable(key)));
  }
  return {};
}

Result<PackedFileWriter> PackedFileWriter::create(const std::string& path, const PackedFileLabel& label,
                                                  std::int64_t expected_bytes) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return disk_error(folder.native(), "create", failure.value());
  KVASIR_CHECKED(check_room(folder, expected_bytes));
  std::string draft = path + ".draft";
  const int fd = ::open(draft.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return disk_error(draft, "create", errno);
  PackedFileWriter writer(path, std::move(draft), fd);
  // A process that died has left its draft, without a lock.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 || !is_file_at(fd, writer.draft_)) {
    writer.draft_.clear();
    return make_error(ErrorKind::kMachine, fmt::format("{}: another process is writing it", printable_line(path)));
  }
  if (::ftruncate(fd, 0) != 0) return disk_error(writer.draft_, "empty", errno);
  writer.label_ = {label.identity.substr(0, kMaxLabelBytes), label.model_path.substr(0, kMaxLabelBytes)};
  writer.end_ = kPageBytes;
  return writer;
}

PackedFileWriter::PackedFileWriter(PackedFileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      draft_(std::move(other.draft_)),
      label_(std::move(other.label_)),
      fd_(std::exchange(other.fd_, -1)),
      end_(other.end_),
      entries_(std::move(other.entries_)) {}

PackedFileWriter& PackedFileWriter::operator=(PackedFileWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(draft_, other.draft_);
  std::swap(label_, other.label_);
  std::swap(fd_, other.fd_);
  std::swap(end_, other.end_);
  std::swap(entries_, other.entries_);
  return *this;
}

PackedFileWriter::~PackedFileWriter() {
  if (fd_ < 0) return;
  if (!draft_.empty()) ::unlink(draft_.c_str());
  ::close(fd_);
}

Status PackedFileWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return disk_error(draft_, "write", count < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Status PackedFileWriter::add(std::string key, std::span<const std::byte> bytes) {
  Entry entry{.key = std::move(key).substr(0, kMaxEntryKeyBytes),
              .offset = (end_ + kPageBytes - 1) / kPageBytes * kPageBytes,
              .num_bytes = bytes.size(),
              .sample_hash = sample_hash_of(bytes),
              .hash = hash_bytes(bytes)};
  KVASIR_CHECKED(write_at(entry.offset, bytes));
  end_ = entry.offset + entry.num_bytes;
  entries_.push_back(std::move(entry));
  return {};
}

Status PackedFileWriter::finish() {
  std::vector<std::byte> table;
  const auto append = [&table](const void* data, std::size_t size) {
    const std::span<const std::byte> bytes = memory_bytes(data, size);
    table.insert(table.end(), bytes.begin(), bytes.end());
  };
  for (const Entry& entry : entries_) {
    const std::uint64_t key_bytes = entry.key.size();
    append(&key_bytes, sizeof key_bytes);
    append(entry.key.data(), entry.key.size());
    for (const std::uint64_t number : {entry.offset, entry.num_bytes, entry.sample_hash, entry.hash}) {
      append(&number, sizeof number);
    }
  }
  PackedHeader header;
  header.identity_bytes = static_cast<std::uint32_t>(label_.identity.size());
  header.model_path_bytes = static_cast<std::uint32_t>(label_.model_path.size());
  std::ranges::copy(label_.identity, header.identity.begin());
  std::ranges::copy(label_.model_path, header.model_path.begin());
  header.table_offset = end_;
  header.file_bytes = end_ + table.size();
  header.num_entries = entries_.size();
  header.table_hash = hash_bytes(table);
  KVASIR_CHECKED(write_at(end_, table));
  KVASIR_CHECKED(write_at(0, page_of(header)));
  if (::fsync(fd_) != 0) return disk_error(draft_, "write", errno);
  if (::rename(draft_.c_str(), path_.c_str()) != 0) return disk_error(path_, "create", errno);
  draft_.clear();
  return {};
}

}  // namespace kvasir::io
