// A file being received, under a temporary name until it is whole and right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "kvasir/result.h"
#include "store/sha256.h"

namespace kvasir::store {

// Counts and hashes what is written. Destroying it without publish() removes the file.
// Thread safety: none.
class StagedFile {
 public:
  // Creates `path`. Errors: kMachine.
  static Result<StagedFile> create(std::filesystem::path path, std::int64_t expected_bytes);

  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  // Errors: kMachine (the disk is full, ...), kBadFile when more than the expected bytes arrive.
  Status write(std::span<const std::byte> bytes);
  std::int64_t bytes_written() const { return bytes_written_; }

  // Checks size and SHA-256, makes the bytes durable and renames the file to `final_path` in one step.
  // Errors: kBadFile naming both values when they differ; kMachine.
  Status publish(const std::filesystem::path& final_path, const std::string& expected_sha256);

 private:
  StagedFile(std::filesystem::path path, int fd, std::int64_t expected_bytes)
      : path_(std::move(path)), fd_(fd), expected_bytes_(expected_bytes) {}

  std::filesystem::path path_;
  int fd_;
  std::int64_t expected_bytes_;
  std::int64_t bytes_written_ = 0;
  Sha256 hash_;
};

// The SHA-256 of a whole file; `on_bytes(done)` is called now and then, and false stops with kCancelled.
Result<std::string> hash_file(const std::filesystem::path& path,
                              const std::function<bool(std::int64_t)>& on_bytes);

}  // namespace kvasir::store
