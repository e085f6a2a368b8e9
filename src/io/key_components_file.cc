#include "io/key_components_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/half.h"
#include "base/printable.h"
#include "io/gguf_reader.h"
#include "io/gguf_writer.h"
#include "io/mmap_file.h"

namespace kvasir::io {
namespace {

constexpr std::string_view kArchitecture = "kvasir-keys";
constexpr std::int64_t kMostHeads = 1 << 16, kMostWidth = 512;
constexpr int kMostBits = 6;

// Tensors of the file: [head_dim] or [head_dim, head_dim] for each head. A component that is left out has 0 bits.
constexpr std::array<const char*, 4> kNames = {"keys.mean", "keys.deviations", "keys.bits", "keys.directions"};
enum : std::size_t { kMean, kDeviations, kBits, kDirections };

std::unexpected<Error> bad_keys(const std::string& path, std::string_view what) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}; kvasir calibrate-kv writes it anew", printable_line(path), what));
}

struct Tensors {
  std::array<TensorView, kNames.size()> of = {};
  std::int64_t head_dim = 0, num_heads = 0;
};

Result<Tensors> tensors_of(const std::string& path, const GgufContents& contents) {
  Tensors tensors;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const auto found = std::ranges::find(contents.tensors, kNames[i], &TensorView::name);
    if (found == contents.tensors.end()) return bad_keys(path, fmt::format("it has no tensor {}", kNames[i]));
    tensors.of[i] = *found;
  }
  tensors.head_dim = tensors.of[kMean].shape[0];
  tensors.num_heads = tensors.of[kMean].shape[1];
  if (tensors.head_dim < 1 || tensors.head_dim > kMostWidth || tensors.num_heads < 1 || tensors.num_heads > kMostHeads) {
    return bad_keys(path, fmt::format("{} heads of {} numbers, at most {} of {}", tensors.num_heads, tensors.head_dim, kMostHeads, kMostWidth));
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const TensorView& tensor = tensors.of[i];
    const std::int64_t rows = i == kDirections ? tensors.head_dim * tensors.num_heads : tensors.num_heads;
    if (tensor.dtype != (i == kDirections ? DType::kF16 : DType::kF32) || tensor.row_length() != tensors.head_dim || tensor.num_rows() != rows) {
      return bad_keys(path, fmt::format("tensor {} has another type or shape than keys.mean asks for", kNames[i]));
    }
  }
  return tensors;
}

std::vector<float> floats_of(const TensorView& tensor, std::int64_t row) {
  std::vector<float> floats(static_cast<std::size_t>(tensor.row_length()));
  std::memcpy(floats.data(), tensor.row(row), floats.size() * sizeof(float));
  return floats;
}

// Numbers are checked by whoever uses them, but for the bits, which say how many there are.
Result<HeadKeys> head_of(const std::string& path, const Tensors& tensors, std::int64_t head) {
  HeadKeys keys{.mean = floats_of(tensors.of[kMean], head), .directions = {}, .deviations = floats_of(tensors.of[kDeviations], head), .bits = {}};
  for (const float bits : floats_of(tensors.of[kBits], head)) {
    if (!(bits >= 0.0f && bits <= kMostBits)) return bad_keys(path, fmt::format("a number of keys.bits is not from 0 to {}", kMostBits));
    if (bits < 1.0f) break;
    keys.bits.push_back(static_cast<std::int8_t>(bits));
  }
  keys.deviations.resize(keys.bits.size());
  for (std::size_t c = 0; c < keys.bits.size(); ++c) {
    const std::byte* const row = tensors.of[kDirections].row(head * tensors.head_dim + static_cast<std::int64_t>(c));
    for (std::int64_t d = 0; d < tensors.head_dim; ++d) {
      std::uint16_t half = 0;
      std::memcpy(&half, row + d * 2, sizeof(half));
      keys.directions.push_back(half_to_float(half));
    }
  }
  return keys;
}

// A tensor's bytes, with zeros for the components that are left out.
class TensorBytes {
 public:
  explicit TensorBytes(std::int32_t head_dim) : head_dim_(static_cast<std::size_t>(head_dim)) {}
  void add_floats(std::span<const float> numbers) {
    std::vector<float> row(numbers.begin(), numbers.end());
    row.resize(head_dim_);
    add(std::as_bytes(std::span(row)));
  }
  void add_directions(std::span<const float> numbers) {
    std::vector<std::uint16_t> halves;
    for (const float number : numbers) halves.push_back(float_to_half(number));
    halves.resize(head_dim_ * head_dim_);
    add(std::as_bytes(std::span(halves)));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void add(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::size_t head_dim_;
  std::vector<std::byte> bytes_;
};

std::array<TensorBytes, kNames.size()> bytes_of(const KeyComponentsFile& file) {
  std::array<TensorBytes, kNames.size()> tensors = {TensorBytes(file.head_dim), TensorBytes(file.head_dim), TensorBytes(file.head_dim),
                                                    TensorBytes(file.head_dim)};
  for (const HeadKeys& head : file.heads) {
    tensors[kMean].add_floats(head.mean);
    tensors[kDeviations].add_floats(head.deviations);
    tensors[kBits].add_floats(std::vector<float>(head.bits.begin(), head.bits.end()));
    tensors[kDirections].add_directions(head.directions);
  }
  return tensors;
}

}  // namespace

std::string key_components_path(const std::string& model_path) {
  std::string path = model_path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path + ".kv.keys";
}

Result<std::optional<KeyComponentsFile>> read_key_components(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  KVASIR_TRY(const MmapFile bytes, MmapFile::open(path));
  KVASIR_TRY(const GgufContents contents, parse_gguf(bytes.bytes(), path));
  KeyComponentsFile file;
  const auto architecture = contents.metadata.get_string("general.architecture");
  if (!architecture || *architecture != kArchitecture) return bad_keys(path, "it is no file of keys");
  const auto model = contents.metadata.get_string("keys.model");
  if (!model) return bad_keys(path, "it does not name its model");
  file.model = *model;
  KVASIR_TRY(const Tensors tensors, tensors_of(path, contents));
  file.head_dim = static_cast<std::int32_t>(tensors.head_dim);
  for (std::int64_t head = 0; head < tensors.num_heads; ++head) {
    KVASIR_TRY(HeadKeys keys, head_of(path, tensors, head));
    file.heads.push_back(std::move(keys));
  }
  return file;
}

Status write_key_components(const std::string& path, const KeyComponentsFile& file) {
  const std::string unfinished = path + ".part";
  std::error_code failed;
  std::filesystem::remove(unfinished, failed);
  const auto num_heads = static_cast<std::int64_t>(file.heads.size());
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const bool is_matrix = i == kDirections;
    views.push_back({.name = kNames[i],
                     .dtype = is_matrix ? DType::kF16 : DType::kF32,
                     .rank = is_matrix ? 3 : 2,
                     .shape = {file.head_dim, is_matrix ? file.head_dim : num_heads, is_matrix ? num_heads : 1, 1}});
  }
  const std::array entries = {string_entry("general.architecture", kArchitecture), string_entry("general.type", "kv-keys"),
                              string_entry("keys.model", file.model)};
  const GgufLayout layout(entries, std::move(views));
  KVASIR_TRY(GgufWriter writer, GgufWriter::open(unfinished, layout));
  const auto tensors = bytes_of(file);
  for (std::size_t i = 0; i < tensors.size(); ++i) KVASIR_CHECKED(writer.write(i, 0, tensors[i].bytes()));
  KVASIR_CHECKED(writer.finish());
  std::filesystem::rename(unfinished, path, failed);
  if (failed) return make_error(ErrorKind::kMachine, fmt::format("{}: {}", printable_line(path), failed.message()));
  return {};
}

}  // namespace kvasir::io
