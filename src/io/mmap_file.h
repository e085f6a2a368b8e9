// A file mapped into memory for reading.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "kvasir/result.h"

namespace kvasir::io {

// Move-only owner of a private read-only mapping; unmapped on destruction. The mapping follows the file:
// truncating it while it is mapped makes later reads fault, as for every program that maps files. Thread
// safety: const members may be called from any thread.
class MmapFile {
 public:
  // Errors: kBadFile when there is no such file, it is a folder or not a regular file; kMachine when it may
  // not be read or mapped.
  static Result<MmapFile> open(const std::string& path);

  MmapFile(MmapFile&& other) noexcept;
  MmapFile& operator=(MmapFile&& other) noexcept;
  ~MmapFile();

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  const std::string& path() const { return path_; }

  // Brings the pages of `range`, a part of some mapping of this class, into this process, where the system can.
  static void populate(std::span<const std::byte> range);
  // Drops the whole pages inside `range`, a part of some mapping of this class, from this process; a later
  // read brings them back from the file.
  static void release_pages(std::span<const std::byte> range);

 private:
  MmapFile(std::string path, const std::byte* data, std::size_t size_bytes)
      : path_(std::move(path)), data_(data), size_bytes_(size_bytes) {}

  std::string path_;
  const std::byte* data_ = nullptr;  // null when the file is empty
  std::size_t size_bytes_ = 0;
};

}  // namespace kvasir::io
