#include "io/quantized_source.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "quant/encode/encode.h"

namespace kvasir::io {
namespace {

constexpr std::pair<std::string_view, DType> kLoadTypes[] = {
    {"q8_0", DType::kQ8_0}, {"q4_0", DType::kQ4_0}, {"q4_k", DType::kQ4_K}, {"mxfp4", DType::kMXFP4},
    {"bf16", DType::kBF16}};
// Parts of names of matrices that are small, or choose: their rounding would cost more than it saves.
constexpr std::string_view kKeptParts[] = {"ffn_gate_inp", "norm", "conv1d", "shortconv", "ssm_a", "attn_sinks"};
constexpr const char *kEmbedding = "token_embd.weight", *kHead = "output.weight";

bool is_float(DType dtype) { return info_of(dtype).block_elements == 1; }

bool is_layer_matrix(const TensorView& tensor) {
  const auto is_part = [&tensor](std::string_view part) { return tensor.name.find(part) != std::string::npos; };
  return tensor.rank >= 2 && tensor.num_rows() > 1 && tensor.name.starts_with("blk.") &&
         tensor.name.ends_with(".weight") && std::ranges::none_of(kKeptParts, is_part);
}

// The head is the last to choose: its blocks are those of Q8_0 at least.
DType head_type(DType wanted) { return is_float(wanted) ? wanted : DType::kQ8_0; }

// The type that a float matrix is read in. F16 has more bits than BF16, and no more bytes.
DType type_for(const TensorView& tensor, DType wanted) {
  if (is_float(wanted) && tensor.dtype != DType::kF32) return tensor.dtype;
  for (const DType type : {wanted, DType::kQ8_0}) {
    if (tensor.row_length() % info_of(type).block_elements == 0) return type;
  }
  return tensor.dtype;
}

class QuantizedSource final : public WeightSource {
 public:
  QuantizedSource(std::unique_ptr<WeightSource> source, DType type, int num_threads, bool has_head)
      : source_(std::move(source)), num_threads_(num_threads) {
    for (const TensorView& tensor : source_->tensors()) add(tensor, tensor.name, type);
    // A head of its own, where the table of embeddings is the head: rows are looked up in the table as it is.
    const TensorView* embedding = source_->find(kEmbedding);
    if (has_head && source_->find(kHead) == nullptr && embedding != nullptr && is_float(embedding->dtype) &&
        type_for(*embedding, head_type(type)) != embedding->dtype) {
      add(*embedding, kHead, type);
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.push_back(i);
    std::ranges::sort(by_name_, {}, [this](std::size_t i) -> const std::string& { return tensors_[i].name; });
  }

  const Metadata& metadata() const override { return source_->metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  std::string_view description() const override { return source_->description(); }
  std::span<const UnsupportedTensor> unsupported() const override { return source_->unsupported(); }
  std::span<const std::string> left_out() const override { return source_->left_out(); }

  const TensorView* find(std::string_view name) const override {
    const auto name_of = [this](std::size_t i) -> const std::string& { return tensors_[i].name; };
    const auto it = std::ranges::lower_bound(by_name_, name, {}, name_of);
    return it != by_name_.end() && tensors_[*it].name == name ? &tensors_[*it] : nullptr;
  }

  TensorView rows(const TensorView& tensor, std::int64_t begin, std::int64_t end,
                  std::vector<std::byte>& scratch) const override {
    const TensorView& original = original_of(tensor);
    if (original.dtype == tensor.dtype) return source_->rows(original, begin, end, scratch);
    std::vector<std::byte> own;
    const TensorView floats = source_->rows(original, begin, end, own);
    TensorView slice{
        .name = tensor.name, .dtype = tensor.dtype, .rank = 2, .shape = {tensor.row_length(), end - begin, 1, 1}};
    scratch.resize(static_cast<std::size_t>(slice.num_bytes()));
    slice.data = scratch.data();
    encode(floats, tensor.dtype, scratch.data());
    return slice;
  }

  void release_pages(const TensorView& tensor) const override { source_->release_pages(tensor); }
  void release_rows(const TensorView& tensor, std::int64_t begin, std::int64_t end) const override {
    source_->release_rows(original_of(tensor), begin, end);
  }

 private:
  void add(const TensorView& original, const std::string& name, DType type) {
    TensorView view = original;
    view.name = name;
    const bool is_head = name == kHead && is_float(original.dtype);
    if (is_head || (is_layer_matrix(original) && is_float(original.dtype))) {
      view.dtype = type_for(original, is_head ? head_type(type) : type);
      if (view.dtype != original.dtype) view.data = nullptr;
    }
    tensors_.push_back(std::move(view));
    originals_.push_back(&original);
  }

  const TensorView& original_of(const TensorView& tensor) const {
    return *originals_[static_cast<std::size_t>(find(tensor.name) - tensors_.data())];
  }

  // Each thread takes neighbouring rows.
  void encode(const TensorView& floats, DType type, std::byte* out) const {
    const quant::EncodeRow encode_row = quant::encoder_of(type);
    const std::int64_t bytes = row_bytes(type, floats.row_length());
    const auto encode_rows = [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> values(static_cast<std::size_t>(floats.row_length()));
      for (std::int64_t row = begin; row < end; ++row) {
        info_of(floats.dtype).unpack_row(floats.row(row), floats.row_length(), values.data());
        encode_row(values.data(), floats.row_length(), out + row * bytes);
      }
    };
    const std::int64_t num_rows = floats.num_rows(), count = std::min<std::int64_t>(num_threads_, num_rows);
    std::vector<std::jthread> threads;
    for (std::int64_t i = 1; i < count; ++i) {
      threads.emplace_back(encode_rows, num_rows * i / count, num_rows * (i + 1) / count);
    }
    encode_rows(0, num_rows / std::max<std::int64_t>(1, count));
  }

  std::unique_ptr<WeightSource> source_;
  int num_threads_;
  std::vector<TensorView> tensors_;
  std::vector<const TensorView*> originals_;  // of source_, by the index of the tensor
  std::vector<std::size_t> by_name_;
};

}  // namespace

std::optional<DType> load_type_named(std::string_view name) {
  const auto* const found = std::ranges::find(kLoadTypes, name, &std::pair<std::string_view, DType>::first);
  return found == std::end(kLoadTypes) ? std::nullopt : std::optional(found->second);
}

std::unique_ptr<WeightSource> quantize_on_load(std::unique_ptr<WeightSource> source, DType type, int num_threads,
                                               bool has_head) {
  return std::make_unique<QuantizedSource>(std::move(source), type, num_threads, has_head);
}

}  // namespace kvasir::io
