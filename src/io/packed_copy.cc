#include "io/packed_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/printable.h"

namespace kvasir::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".packed";

std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<fs::path> copies_in(const fs::path& directory) {
  std::vector<fs::path> copies;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == kExtension) copies.push_back(it->path());
  }
  std::ranges::sort(copies);
  return copies;
}

void remove_file(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

// Of one model's copies with other settings the one that was used last stays.
void remove_older(const PackedCopyName& name) {
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  for (const std::string& copy : packed_copies_of(name.directory, name.fingerprint)) {
    std::error_code ignored;
    if (copy != name.path()) others.emplace_back(fs::last_write_time(copy, ignored), copy);
  }
  std::ranges::sort(others, std::greater());
  for (std::size_t i = 1; i < others.size(); ++i) remove_file(others[i].second);
}

}  // namespace

std::string PackedCopyName::path() const {
  const std::string file = fmt::format("{}-{:016x}{}", fingerprint, hash_bytes(text_bytes(settings)), kExtension);
  return (fs::path(directory) / file).native();
}

std::string PackedCopyName::identity() const { return fmt::format("{} {} {}", fingerprint, settings, state); }

std::vector<std::string> packed_copies_of(const std::string& directory, std::string_view fingerprint) {
  std::vector<std::string> copies;
  for (const fs::path& copy : copies_in(directory)) {
    if (copy.filename().native().starts_with(fmt::format("{}-", fingerprint))) copies.push_back(copy.native());
  }
  return copies;
}

Status verify_packed_copy(const std::string& path) {
  KVASIR_TRY(const PackedFileLabel label, PackedFile::read_label(path));
  KVASIR_TRY(const PackedFile file, PackedFile::open(path, label.identity));
  return file.verify();
}

std::int64_t remove_orphaned_copies(const std::string& directory) {
  std::int64_t removed_bytes = 0;
  for (const fs::path& copy : copies_in(directory)) {
    const auto label = PackedFile::read_label(copy.native());
    std::error_code ignored;
    if (label && fs::exists(label->model_path, ignored)) continue;
    const std::uintmax_t size = fs::file_size(copy, ignored);
    if (!ignored) removed_bytes += static_cast<std::int64_t>(size);
    remove_file(copy);
  }
  return removed_bytes;
}

PackedCopy PackedCopy::open(PackedCopyName name) {
  PackedCopy copy;
  copy.name_ = std::move(name);
  if (copy.name_.directory.empty()) return copy;
  const std::string path = copy.name_.path();
  std::error_code error;
  if (!fs::exists(path, error)) return copy;
  auto file = PackedFile::open(path, copy.name_.identity());
  if (!file) {
    copy.drop(file.error().message);
    return copy;
  }
  copy.file_ = std::move(*file);
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // for remove_older()
  return copy;
}

void PackedCopy::drop(std::string_view why) {
  const std::string path = name_.path();
  notices_.push_back(fmt::format("packed copy {}: {}; it is removed and made anew", printable_line(path), why));
  remove_file(path);
}

void PackedCopy::reject(std::string_view why) {
  if (name_.directory.empty()) return;
  drop(why);
  name_.directory.clear();  // matrices of it are in use: it can be made at the next start
}

void PackedCopy::begin_writing(std::int64_t expected_bytes) {
  remove_orphaned_copies(name_.directory);
  remove_older(name_);
  auto writer = PackedFileWriter::create(name_.path(), {.identity = name_.identity(), .model_path = name_.model_path},
                                         expected_bytes);
  if (writer) {
    writer_.emplace(std::move(*writer));
  } else {
    notices_.push_back(fmt::format("no packed copy of the weights is kept: {}", writer.error().message));
  }
}

std::span<const std::byte> PackedCopy::find(std::string_view key) const {
  if (!file_) return {};
  const std::span<const std::byte> bytes = file_->find(key);
  MmapFile::populate(bytes);
  return bytes;
}

void PackedCopy::add(std::string key, std::span<const std::byte> bytes) {
  if (!writer_) return;
  if (const Status added = writer_->add(std::move(key), bytes); !added) {
    notices_.push_back(fmt::format("no packed copy of the weights is kept: {}", added.error().message));
    writer_.reset();
  }
}

void PackedCopy::finish() {
  if (!writer_) return;
  is_written_ = true;
  // What fails now is missed at the next start, which packs again.
  finisher_ = std::jthread([writer = std::move(*writer_)]() mutable { (void)writer.finish(); });
  writer_.reset();
}

PackedCopy::State PackedCopy::state() const {
  if (is_hit()) return State::kHit;
  return is_written_ ? State::kWritten : State::kOff;
}

std::string_view name_of(PackedCopy::State state) {
  constexpr std::string_view kNames[] = {"off", "hit", "written"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace kvasir::io
