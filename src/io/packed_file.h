// A model's weights as the kernels read them, in a file of Kvasir's own that a later start maps.
//
// Layout, in the byte order of the machine that wrote it: a header of 4096 bytes, the matrices, each at a multiple of
// 4096, and a table of their keys, places and checksums. The header is written last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/mmap_file.h"
#include "kvasir/result.h"

namespace kvasir::io {

// Raise it when what lies in such files changes its meaning: how a format is packed (kernels/pack.h), how an encoder
// rounds (quant/encode), the rows that a folder's mapping gives. packed_layout_test.cc notices the first two.
inline constexpr std::uint32_t kPackedLayoutVersion = 2;

// 64 bits that a change of the bytes changes; at the speed of memory. No protection against forgery.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// What the header says about the whole.
struct PackedFileLabel {
  std::string identity;    // all that the bytes depend on
  std::string model_path;  // whose weights they are
};

// Immutable; any thread may read.
class PackedFile {
 public:
  // Checks header, length, table and a sample of every matrix. Errors: kBadFile saying what is wrong, without the
  // path: another identity too.
  static Result<PackedFile> open(const std::string& path, std::string_view identity);
  // The label alone. Errors: likewise.
  static Result<PackedFileLabel> read_label(const std::string& path);

  // Empty: there is none of that key.
  std::span<const std::byte> find(std::string_view key) const;
  // Every byte of every matrix. Error (kBadFile): the key of the first that differs.
  Status verify() const;
  std::int64_t size_bytes() const { return static_cast<std::int64_t>(file_.bytes().size()); }
  std::int64_t num_matrices() const { return static_cast<std::int64_t>(entries_.size()); }

 private:
  struct Entry {
    std::span<const std::byte> bytes;
    std::uint64_t sample_hash = 0, hash = 0;
  };
  explicit PackedFile(MmapFile file) : file_(std::move(file)) {}
  Status read_table(std::span<const std::byte> table, std::uint64_t num_entries);

  MmapFile file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

// Writes such a file aside, and puts it in its place when it is whole. One use, one thread.
class PackedFileWriter {
 public:
  // Makes the folder where it is missing. `expected_bytes`: of all matrices. Errors: kMachine when the disk lacks
  // room for them, the draft cannot be made, or another process is writing the same file.
  static Result<PackedFileWriter> create(const std::string& path, const PackedFileLabel& label,
                                         std::int64_t expected_bytes);
  PackedFileWriter(PackedFileWriter&& other) noexcept;
  PackedFileWriter& operator=(PackedFileWriter&& other) noexcept;
  // Removes the draft unless finish() has been called.
  ~PackedFileWriter();

  // Errors here and below: kMachine (the disk).
  Status add(std::string key, std::span<const std::byte> bytes);
  // Makes the bytes durable, then renames the draft.
  Status finish();

 private:
  struct Entry {
    std::string key;
    std::uint64_t offset = 0, num_bytes = 0, sample_hash = 0, hash = 0;
  };
  PackedFileWriter(std::string path, std::string draft, int fd) : path_(std::move(path)), draft_(std::move(draft)), fd_(fd) {}
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  std::string path_, draft_;
  PackedFileLabel label_;
  int fd_ = -1;
  std::uint64_t end_ = 0;  // of what is written
  std::vector<Entry> entries_;
};

}  // namespace kvasir::io
