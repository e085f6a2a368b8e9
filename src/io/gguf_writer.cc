#include "io/gguf_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "io/gguf_append.h"

namespace kvasir::io {
namespace {

constexpr std::uint32_t kMagic = 0x46554747, kVersion = 3;  // "GGUF"
constexpr std::int64_t kAlignment = 32;                     // the format's own where no entry says another

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::unexpected<Error> failed(const std::string& path, std::string_view what) {
  return make_error(ErrorKind::kMachine, fmt::format("{}: {}: {}", printable_line(path), what, std::strerror(errno)));
}

}  // namespace

GgufLayout::GgufLayout(std::span<const GgufEntry> entries, std::vector<TensorView> tensors) : tensors_(std::move(tensors)) {
  append(header_, kMagic);
  append(header_, kVersion);
  append<std::uint64_t>(header_, tensors_.size());
  append<std::uint64_t>(header_, entries.size());
  for (const GgufEntry& entry : entries) {
    CHECK(entry.key != "general.alignment");
    append_text(header_, entry.key);
    append(header_, entry.type);
    header_ += entry.value;
  }
  std::int64_t offset = 0;
  for (const TensorView& tensor : tensors_) {
    append_text(header_, tensor.name);
    append(header_, static_cast<std::uint32_t>(tensor.rank));
    for (std::int32_t i = 0; i < tensor.rank; ++i) {
      append<std::uint64_t>(header_, static_cast<std::uint64_t>(tensor.shape[static_cast<std::size_t>(i)]));
    }
    append(header_, info_of(tensor.dtype).gguf_type);
    append<std::uint64_t>(header_, static_cast<std::uint64_t>(offset));
    offsets_.push_back(offset);
    offset = aligned(offset + tensor.num_bytes());
  }
  const auto begin = aligned(std::ssize(header_));
  header_.resize(static_cast<std::size_t>(begin));
  for (std::int64_t& of_tensor : offsets_) of_tensor += begin;
  num_bytes_ = begin + offset;
}

Result<GgufWriter> GgufWriter::open(const std::string& path, const GgufLayout& layout) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return failed(path, "cannot be written");
  GgufWriter writer(descriptor, path, layout);
  if (::ftruncate(descriptor, layout.num_bytes()) != 0) return failed(path, "cannot grow");
  KVASIR_CHECKED(writer.write_at(0, std::as_bytes(std::span(layout.header()))));
  return writer;
}

GgufWriter::GgufWriter(GgufWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), layout_(other.layout_) {}

GgufWriter::~GgufWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status GgufWriter::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed(path_, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

Status GgufWriter::write(std::size_t tensor, std::int64_t begin, std::span<const std::byte> bytes) {
  CHECK(begin + std::ssize(bytes) <= layout_->tensors()[tensor].num_bytes());
  return write_at(layout_->offset(tensor) + begin, bytes);
}

Status GgufWriter::read(std::size_t tensor, std::int64_t begin, std::span<std::byte> bytes) const {
  return read_at(layout_->offset(tensor) + begin, bytes);
}

Status GgufWriter::read_at(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(path_, "cannot be read");
    if (count == 0) return make_error(ErrorKind::kMachine, printable_line(path_) + ": ends before its last tensor");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
  return {};
}

Status GgufWriter::finish() {
  if (::fsync(descriptor_) != 0) return failed(path_, "cannot be written");
  return {};
}

}  // namespace kvasir::io
