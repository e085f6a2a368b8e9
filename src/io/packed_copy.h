// The packed copy of a model's weights, as one load uses it: read where a sound one is there, else written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/packed_file.h"
#include "kvasir/result.h"

namespace kvasir::io {

// Where the copy lies, and what it must be a copy of.
struct PackedCopyName {
  std::string directory;    // empty: there is none, and none is made
  std::string fingerprint;  // model_fingerprint() of the weights
  std::string settings;     // instruction set, precision, types: a copy each
  std::string state;        // of the files: one of another state is of no use
  std::string model_path;

  std::string path() const;
  std::string identity() const;
};

// The copies in a folder that hold weights with this fingerprint.
std::vector<std::string> packed_copies_of(const std::string& directory, std::string_view fingerprint);

// Reads a whole copy. Error (kBadFile): what is wrong with it, without the path.
Status verify_packed_copy(const std::string& path);

// Removes the copies in a folder whose models are gone, and those that this program cannot read. Returns their bytes.
std::int64_t remove_orphaned_copies(const std::string& directory);

// Not thread-safe: the thread that loads uses it. It must outlive what find() gave.
class PackedCopy {
 public:
  enum class State : std::uint8_t { kOff, kHit, kWritten };

  // Neither reads nor writes.
  PackedCopy() = default;
  // Opens the copy. One that is wrong is removed, with a notice, and can be written anew.
  static PackedCopy open(PackedCopyName name);
  PackedCopy(PackedCopy&&) noexcept = default;
  PackedCopy& operator=(PackedCopy&&) noexcept = default;
  // Waits for finish()'s thread.
  ~PackedCopy() = default;

  bool is_hit() const { return file_.has_value(); }
  bool is_writable() const { return !name_.directory.empty() && !file_; }
  // Before the first add(): makes room, and removes the folder's copies whose models are gone, and all but the newest
  // of this model's other ones. What goes wrong here and below is a notice, and nothing is written then.
  void begin_writing(std::int64_t expected_bytes);

  // The packed bytes, brought into memory; empty where there are none.
  std::span<const std::byte> find(std::string_view key) const;
  void add(std::string key, std::span<const std::byte> bytes);
  // After the last add(): another thread makes the copy durable and puts it in place.
  void finish();
  // What find() gave does not fit the model: the copy is removed.
  void reject(std::string_view why);

  State state() const;
  std::int64_t size_bytes() const { return file_ ? file_->size_bytes() : 0; }
  // A line each for people.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  void drop(std::string_view why);

  PackedCopyName name_;
  std::optional<PackedFile> file_;
  std::optional<PackedFileWriter> writer_;
  bool is_written_ = false;
  std::vector<std::string> notices_;
  std::jthread finisher_;
};

// "off", "hit", "written".
std::string_view name_of(PackedCopy::State state);

}  // namespace kvasir::io
