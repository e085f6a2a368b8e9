#include "compress/neighbour_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace kvasir::compress {
namespace {

constexpr std::int64_t kMostHeadDim = 1 << 16;

struct HeadShape {
  std::int64_t head_dim = 0, rotary_dim = 0;

  // Where the row stands in the folder.
  std::int64_t source_of(std::int64_t row) const {
    const std::int64_t i = row % head_dim;
    return i < rotary_dim ? row - i + i / 2 + i % 2 * (rotary_dim / 2) : row;
  }
};

Result<HeadShape> head_shape(const io::Metadata& metadata, const std::string& architecture) {
  const auto find = [&](const char* key) { return metadata.find_int(architecture + key, 1, kMostHeadDim); };
  HeadShape shape;
  KVASIR_TRY(const auto told, find(".attention.key_length"));
  if (told) {
    shape.head_dim = *told;
  } else {
    KVASIR_TRY(const std::int64_t width, metadata.get_int(architecture + ".embedding_length", 1, 1 << 24));
    KVASIR_TRY(const std::int64_t heads, metadata.get_int(architecture + ".attention.head_count", 1, kMostHeadDim));
    shape.head_dim = std::max<std::int64_t>(1, width / heads);
  }
  KVASIR_TRY(const auto turned, find(".rope.dimension_count"));
  shape.rotary_dim = std::min(turned.value_or(shape.head_dim), shape.head_dim);
  return shape;
}

bool is_turned(std::string_view name) {
  for (const std::string_view end : {".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

class NeighbourRows : public io::WeightSource {
 public:
  NeighbourRows(const io::WeightSource& source, io::Metadata metadata, HeadShape shape)
      : source_(source), metadata_(std::move(metadata)), shape_(shape), tensors_(source.tensors().begin(), source.tensors().end()) {
    for (TensorView& tensor : tensors_) {
      if (is_turned(tensor.name)) tensor.data = nullptr;
      by_name_.emplace(tensor.name, &tensor);
    }
  }

  const io::Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* find(std::string_view name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  TensorView rows(const TensorView& tensor, std::int64_t begin, std::int64_t end, std::vector<std::byte>& scratch) const override {
    const TensorView& original = *source_.find(tensor.name);
    if (!is_turned(tensor.name)) return source_.rows(original, begin, end, scratch);
    TensorView view = original.rows(0, 0);
    view.shape[1] = end - begin;
    if (original.num_rows() == 1) {
      turn_numbers(original, scratch);
    } else {
      gather(original, begin, end, scratch);
    }
    view.data = scratch.data();
    return view;
  }
  void release_pages(const TensorView& tensor) const override { source_.release_pages(*source_.find(tensor.name)); }
  // Rows of one head are read in another order, so pages stay until the whole tensor is done.
  void release_rows(const TensorView& tensor, std::int64_t begin, std::int64_t end) const override {
    const TensorView& original = *source_.find(tensor.name);
    if (!is_turned(tensor.name)) return source_.release_rows(original, begin, end);
    if (end == original.num_rows()) source_.release_rows(original, 0, end);
  }
  std::string_view description() const override { return source_.description(); }

 private:
  void gather(const TensorView& original, std::int64_t begin, std::int64_t end, std::vector<std::byte>& out) const {
    const auto bytes = static_cast<std::size_t>(row_bytes(original.dtype, original.row_length()));
    out.resize(static_cast<std::size_t>(end - begin) * bytes);
    std::vector<std::byte> scratch;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t from = shape_.source_of(row);
      const TensorView one = source_.rows(original, from, from + 1, scratch);
      std::memcpy(out.data() + static_cast<std::size_t>(row - begin) * bytes, one.data, bytes);
    }
  }

  // Of a bias, whose numbers are of a type without blocks.
  void turn_numbers(const TensorView& original, std::vector<std::byte>& out) const {
    const auto bytes = static_cast<std::size_t>(row_bytes(original.dtype, 1));
    std::vector<std::byte> scratch;
    const TensorView whole = source_.rows(original, 0, 1, scratch);
    out.resize(static_cast<std::size_t>(original.row_length()) * bytes);
    for (std::int64_t i = 0; i < original.row_length(); ++i) {
      std::memcpy(out.data() + static_cast<std::size_t>(i) * bytes, whole.data + shape_.source_of(i) * static_cast<std::int64_t>(bytes), bytes);
    }
  }

  const io::WeightSource& source_;
  const io::Metadata metadata_;
  const HeadShape shape_;
  std::vector<TensorView> tensors_;
  std::map<std::string_view, const TensorView*> by_name_;
};

}  // namespace

Result<std::unique_ptr<io::WeightSource>> with_neighbour_rows(const io::WeightSource& source) {
  KVASIR_TRY(const std::string architecture, source.metadata().get_string("general.architecture"));
  const std::string key = architecture + ".rope.style";
  KVASIR_TRY(const auto style, source.metadata().find_string(key));
  if (style != "halves") return nullptr;
  KVASIR_TRY(const HeadShape shape, head_shape(source.metadata(), architecture));
  for (const TensorView& tensor : source.tensors()) {
    if (tensor.name.ends_with(".attn_q_norm.weight")) return nullptr;
    const std::int64_t count = tensor.num_rows() == 1 ? tensor.row_length() : tensor.num_rows();
    if (is_turned(tensor.name) && count % shape.head_dim != 0) {
      return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: heads of {} do not divide its {} rows", printable(tensor.name),
                                                         shape.head_dim, count));
    }
  }
  auto values = source.metadata().values();
  values.erase(key);
  return std::make_unique<NeighbourRows>(source, io::Metadata(std::move(values)), shape);
}

}  // namespace kvasir::compress
