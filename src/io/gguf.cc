// open_gguf: one file, or the parts of a split one, mapped and served as a WeightSource.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "io/gguf_reader.h"
#include "io/mmap_file.h"
#include "io/weight_source.h"

namespace kvasir::io {
namespace {

constexpr std::int64_t kMaxParts = 9999;
constexpr std::int64_t kMaxTensors = 1 << 30;

struct Part {
  MmapFile file;
  GgufContents contents;
};

class GgufSource final : public WeightSource {
 public:
  // The metadata are the first part's; the others carry only tensors.
  GgufSource(std::string path, std::vector<Part> parts) : path_(std::move(path)) {
    metadata_ = std::move(parts.front().contents.metadata);
    for (Part& part : parts) {
      std::ranges::move(part.contents.tensors, std::back_inserter(tensors_));
      std::ranges::move(part.contents.unsupported, std::back_inserter(unsupported_));
      files_.push_back(std::move(part.file));
    }
    for (const TensorView& tensor : tensors_) by_name_.push_back(&tensor);
    std::ranges::sort(by_name_, {}, &TensorView::name);
  }

  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  std::span<const UnsupportedTensor> unsupported() const override { return unsupported_; }
  std::string_view description() const override { return path_; }

  const TensorView* find(std::string_view name) const override {
    const auto it = std::ranges::lower_bound(by_name_, name, {}, &TensorView::name);
    return it != by_name_.end() && (*it)->name == name ? *it : nullptr;
  }

  void release_pages(const TensorView& tensor) const override {
    MmapFile::release_pages({tensor.data, static_cast<std::size_t>(tensor.num_bytes())});
  }

  // The name that two parts both use, if there is one.
  const std::string* repeated_name() const {
    const auto twice = std::ranges::adjacent_find(by_name_, {}, &TensorView::name);
    return twice == by_name_.end() ? nullptr : &(*twice)->name;
  }

 private:
  std::string path_;
  std::vector<MmapFile> files_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::vector<UnsupportedTensor> unsupported_;
  std::vector<const TensorView*> by_name_;  // sorted by name
};

std::unexpected<Error> bad(std::string_view path, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(path), problem));
}

Result<Part> open_part(const std::string& path, TensorTypes types) {
  KVASIR_TRY(MmapFile file, MmapFile::open(path));
  KVASIR_TRY(GgufContents contents, parse_gguf(file.bytes(), path, types));
  return Part{std::move(file), std::move(contents)};
}

Result<std::int64_t> split_field(const Part& part, std::string_view key, std::int64_t min, std::int64_t max) {
  auto value = part.contents.metadata.get_int(key, min, max);
  if (!value) return bad(part.file.path(), value.error().message);
  return *value;
}

// The tensors of all parts together, where the part says it.
Result<std::optional<std::int64_t>> announced_tensors(const Part& part) {
  auto value = part.contents.metadata.find_int("split.tensors.count", 0, kMaxTensors);
  if (!value) return bad(part.file.path(), value.error().message);
  return *value;
}

std::string part_suffix(std::int64_t index, std::int64_t num_parts) {
  return fmt::format("-{:05}-of-{:05}.gguf", index + 1, num_parts);
}

// Opens parts 2..n beside the first, whose file name says where they are.
Status open_other_parts(std::vector<Part>& parts, std::int64_t num_parts, TensorTypes types) {
  const std::string first_path = parts.front().file.path();
  KVASIR_TRY(const std::int64_t first_index, split_field(parts.front(), "split.no", 0, num_parts - 1));
  const std::string suffix = part_suffix(first_index, num_parts);
  if (!first_path.ends_with(suffix)) {
    return bad(first_path, fmt::format("is part {} of {} and must be named <name>{}", first_index + 1,
                                       num_parts, suffix));
  }
  const std::string stem = first_path.substr(0, first_path.size() - suffix.size());
  if (first_index != 0) {
    return bad(first_path, fmt::format("is part {} of {}; open the first one: {}", first_index + 1, num_parts,
                                       printable_line(stem + part_suffix(0, num_parts))));
  }
  for (std::int64_t index = 1; index < num_parts; ++index) {
    KVASIR_TRY(Part part, open_part(stem + part_suffix(index, num_parts), types));
    KVASIR_TRY(const std::int64_t count, split_field(part, "split.count", 1, kMaxParts));
    KVASIR_TRY(const std::int64_t number, split_field(part, "split.no", 0, kMaxParts));
    if (count != num_parts || number != index) {
      return bad(part.file.path(), fmt::format("says it is part {} of {}, but its name says part {} of {}",
                                               number + 1, count, index + 1, num_parts));
    }
    parts.push_back(std::move(part));
  }
  std::int64_t num_tensors = 0;
  for (const Part& part : parts) {
    num_tensors += std::ssize(part.contents.tensors) + std::ssize(part.contents.unsupported);
  }
  KVASIR_TRY(const auto announced, announced_tensors(parts.front()));
  if (announced && num_tensors != *announced) {
    return bad(first_path, fmt::format("split.tensors.count is {}, but the {} parts hold {} tensors",
                                       *announced, num_parts, num_tensors));
  }
  return {};
}

// The number of parts that belong to this one. A count of 0 or 1 is what tools leave in a file that they have
// merged; so is a larger one beside all of the tensors.
Result<std::int64_t> count_parts(const Part& part) {
  auto count = part.contents.metadata.find_int("split.count", 0, kMaxParts);
  if (!count) return bad(part.file.path(), count.error().message);
  if (count->value_or(0) <= 1) return 1;
  KVASIR_TRY(const auto announced, announced_tensors(part));
  const bool has_all = announced == std::ssize(part.contents.tensors) + std::ssize(part.contents.unsupported);
  return has_all ? 1 : **count;
}

}  // namespace

Result<std::unique_ptr<WeightSource>> open_gguf(const std::string& path, TensorTypes types) {
  std::vector<Part> parts;
  KVASIR_TRY(Part first, open_part(path, types));
  parts.push_back(std::move(first));
  KVASIR_TRY(const std::int64_t num_parts, count_parts(parts.front()));
  if (num_parts > 1) KVASIR_CHECKED(open_other_parts(parts, num_parts, types));
  auto source = std::make_unique<GgufSource>(path, std::move(parts));
  if (const std::string* name = source->repeated_name()) {
    return bad(path, fmt::format("tensor {} appears in two parts", printable(*name)));
  }
  return source;
}

}  // namespace kvasir::io
