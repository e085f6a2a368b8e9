// A large file that arrives in pieces, several at a time, and survives the end of the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kvasir/result.h"

namespace kvasir::store {

// The bytes lie in `.<etag>.<random>.incomplete`, which has its whole size from the start.
// `.<etag>.<random>.pieces` beside it says how much of each piece is there. Both stay when the object goes,
// for the next process.
//
// Thread safety: write() for different pieces, and bytes_done(), may run at once; the rest may not.
class PartialFile {
 public:
  struct Identity {
    std::string commit;
    std::string etag;
    std::int64_t size_bytes = 0;
  };
  static constexpr std::int64_t kPieceBytes = std::int64_t{32} << 20;

  // Goes on with the unfinished file of the same identity in `folder`, if there is one, else makes one.
  // Unfinished files of the same etag that do not fit are removed. Error: kMachine.
  static Result<PartialFile> open(const std::filesystem::path& folder, const Identity& identity,
                                  std::int64_t piece_bytes = kPieceBytes);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  const std::filesystem::path& path() const { return path_; }
  std::int64_t size_bytes() const { return identity_.size_bytes; }
  // Whether an earlier process left bytes.
  bool was_resumed() const { return was_resumed_; }

  std::int32_t num_pieces() const { return num_pieces_; }
  std::int64_t piece_begin(std::int32_t piece) const { return piece * piece_bytes_; }
  std::int64_t piece_end(std::int32_t piece) const;
  // Bytes of the piece that are there, from its start.
  std::int64_t piece_done(std::int32_t piece) const { return done_[piece].load(std::memory_order_relaxed); }
  std::int64_t bytes_done() const;
  bool is_whole() const { return bytes_done() == size_bytes(); }

  // Adds bytes to a piece. Requires: they fit into it. Error: kMachine (the disk is full, ...).
  Status write(std::int32_t piece, std::span<const std::byte> bytes);
  // Forgets what is there. As one piece, for a server that sends whole files only.
  Status start_anew(bool as_one_piece);

  // Renames the file to `final_path`, once it is on the disk. The content is checked before. Error: kMachine.
  Status publish(const std::filesystem::path& final_path);
  // Deletes the file.
  void discard();

 private:
  PartialFile(std::filesystem::path path, Identity identity, std::int64_t piece_bytes);

  std::filesystem::path pieces_path() const;
  // Opens both files. False: they do not fit together, or are not of this identity.
  Result<bool> open_existing();
  Status create();
  Status record(std::int32_t piece);

  std::filesystem::path path_;
  Identity identity_;
  std::int64_t piece_bytes_;
  std::int32_t num_pieces_ = 0;
  std::int64_t table_begin_ = 0;  // of the counts, in the second file
  int fd_ = -1;
  int pieces_fd_ = -1;
  bool was_resumed_ = false;
  std::unique_ptr<std::atomic<std::int64_t>[]> done_;
};

// Bytes of unfinished files that `folder` holds already on the disk for this etag.
std::int64_t bytes_of_partial(const std::filesystem::path& folder, const std::string& etag);

}  // namespace kvasir::store
