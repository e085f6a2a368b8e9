#include "shape_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "base/half.h"
#include "io/gguf_entries.h"
#include "io/gguf_writer.h"
#include "tensor/tensor_view.h"

namespace kvasir::testing {
namespace {

constexpr ModelShape kShapes[] = {
    {"smollm2", "llama", 30, 576, 1536, 9, 3, 64, 49152, 0, 0, DType::kQ4_0, DType::kQ8_0, true},
    {"gemma3", "gemma3", 18, 640, 2048, 4, 1, 256, 262144, 0, 0, DType::kQ4_0, DType::kQ8_0, true},
    {"8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 0, 0, DType::kQ4_K, DType::kQ6_K, false},
    {"30b-a3b", "qwen3moe", 48, 2048, 768, 32, 4, 128, 151936, 128, 8, DType::kQ4_K, DType::kQ6_K, false},
};

std::vector<io::GgufEntry> entries_of(const ModelShape& shape) {
  const std::string arch = shape.architecture;
  const auto number = [&](const char* key, std::int32_t value) {
    return io::uint32_entry(arch + "." + key, static_cast<std::uint32_t>(value));
  };
  std::vector<io::GgufEntry> entries = {
      io::string_entry("general.architecture", arch),
      io::string_entry("general.name", shape.name),
      number("context_length", 8192),
      number("embedding_length", shape.hidden_size),
      number("block_count", shape.num_layers),
      number("feed_forward_length", shape.intermediate_size),
      number("attention.head_count", shape.num_heads),
      number("attention.head_count_kv", shape.num_kv_heads),
      number("attention.key_length", shape.head_dim),
      number("attention.value_length", shape.head_dim),
      number("vocab_size", shape.vocab_size),
      io::float_entry(arch + ".attention.layer_norm_rms_epsilon", 1e-6f),
      io::float_entry(arch + ".rope.freq_base", 1e6f),
      io::string_entry("tokenizer.ggml.model", "no_vocab"),
  };
  if (arch == "llama") entries.push_back(number("rope.dimension_count", shape.head_dim));
  if (arch == "gemma3") entries.push_back(number("attention.sliding_window", 512));
  if (shape.num_experts > 0) {
    entries.push_back(number("expert_count", shape.num_experts));
    entries.push_back(number("expert_used_count", shape.num_used_experts));
    entries.push_back(number("expert_feed_forward_length", shape.intermediate_size));
  }
  return entries;
}

class TensorList {
 public:
  void matrix(std::string name, DType type, std::int64_t rows, std::int64_t columns, std::int64_t experts = 1) {
    tensors_.push_back({.name = std::move(name), .dtype = type, .rank = experts > 1 ? 3 : 2, .shape = {columns, rows, experts, 1}});
  }
  void vector(std::string name, std::int64_t length) {
    tensors_.push_back({.name = std::move(name), .dtype = DType::kF32, .rank = 1, .shape = {length, 1, 1, 1}});
  }
  std::vector<TensorView> take() { return std::move(tensors_); }

 private:
  std::vector<TensorView> tensors_;
};

void add_layer(const ModelShape& shape, std::int32_t layer, TensorList& list) {
  const std::string prefix = fmt::format("blk.{}.", layer), arch = shape.architecture;
  const std::int64_t hidden = shape.hidden_size, ffn = shape.intermediate_size, experts = std::max(1, shape.num_experts);
  const std::int64_t q = std::int64_t{shape.num_heads} * shape.head_dim, kv = std::int64_t{shape.num_kv_heads} * shape.head_dim;
  const DType type = shape.layer_type;
  list.vector(prefix + "attn_norm.weight", hidden);
  list.vector(prefix + "ffn_norm.weight", hidden);
  list.matrix(prefix + "attn_q.weight", type, q, hidden);
  list.matrix(prefix + "attn_k.weight", type, kv, hidden);
  list.matrix(prefix + "attn_v.weight", type, kv, hidden);
  list.matrix(prefix + "attn_output.weight", type, hidden, q);
  if (arch != "llama") {
    list.vector(prefix + "attn_q_norm.weight", shape.head_dim);
    list.vector(prefix + "attn_k_norm.weight", shape.head_dim);
  }
  if (arch == "gemma3") {
    list.vector(prefix + "post_attention_norm.weight", hidden);
    list.vector(prefix + "post_ffw_norm.weight", hidden);
  }
  const std::string suffix = experts > 1 ? "_exps.weight" : ".weight";
  if (experts > 1) list.matrix(prefix + "ffn_gate_inp.weight", DType::kF32, experts, hidden);
  list.matrix(prefix + "ffn_gate" + suffix, type, ffn, hidden, experts);
  list.matrix(prefix + "ffn_up" + suffix, type, ffn, hidden, experts);
  list.matrix(prefix + "ffn_down" + suffix, type, hidden, ffn, experts);
}

std::vector<TensorView> tensors_of(const ModelShape& shape) {
  TensorList list;
  list.matrix("token_embd.weight", shape.is_tied ? shape.head_type : shape.layer_type, shape.vocab_size, shape.hidden_size);
  list.vector("output_norm.weight", shape.hidden_size);
  if (!shape.is_tied) list.matrix("output.weight", shape.head_type, shape.vocab_size, shape.hidden_size);
  for (std::int32_t layer = 0; layer < shape.num_layers; ++layer) add_layer(shape, layer, list);
  return list.take();
}

// Where a block's half-precision scales are, and one with which weights are about 1 / 64 at most.
struct BlockScales {
  std::vector<std::size_t> places;
  float scale;
};
BlockScales scales_of(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return {{0}, 2e-3f};
    case DType::kQ8_0:
      return {{0}, 1.2e-4f};
    case DType::kQ4_K:
      return {{0, 2}, 1e-4f};
    default:
      return {{208}, 1e-4f};  // Q6_K
  }
}

// Random bytes that are blocks of one type, a little more than the largest tensor.
class BlockSource {
 public:
  BlockSource(DType type, std::int64_t most_bytes, std::mt19937& random) : random_(random) {
    const DTypeInfo& info = info_of(type);
    block_bytes_ = info.block_bytes;
    std::vector<std::uint32_t> words(static_cast<std::size_t>((most_bytes + kSpareBlocks * block_bytes_ + 3) / 4));
    for (std::uint32_t& word : words) word = random();
    bytes_.resize(words.size() * 4);
    std::memcpy(bytes_.data(), words.data(), bytes_.size());
    const BlockScales scales = scales_of(type);
    const std::uint16_t scale = float_to_half(scales.scale);
    for (std::size_t block = 0; block + static_cast<std::size_t>(block_bytes_) <= bytes_.size(); block += static_cast<std::size_t>(block_bytes_)) {
      for (const std::size_t place : scales.places) std::memcpy(bytes_.data() + block + place, &scale, sizeof(scale));
    }
  }
  std::span<const std::byte> take(std::int64_t num_bytes) {
    const auto begin = static_cast<std::size_t>(random_() % kSpareBlocks) * static_cast<std::size_t>(block_bytes_);
    return std::span(bytes_).subspan(begin, static_cast<std::size_t>(num_bytes));
  }

 private:
  static constexpr std::int64_t kSpareBlocks = 4096;
  std::mt19937& random_;
  std::int64_t block_bytes_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::span<const ModelShape> model_shapes() { return kShapes; }

Status write_shape_model(const ModelShape& shape, const std::string& path, std::uint32_t seed) {
  const io::GgufLayout layout(entries_of(shape), tensors_of(shape));
  KVASIR_TRY(io::GgufWriter writer, io::GgufWriter::open(path, layout));
  std::mt19937 random(seed);
  std::vector<std::pair<DType, BlockSource>> sources;
  for (const DType type : {shape.layer_type, shape.head_type}) {
    std::int64_t most_bytes = 0;
    for (const TensorView& tensor : layout.tensors()) {
      if (tensor.dtype == type) most_bytes = std::max(most_bytes, tensor.num_bytes());
    }
    sources.emplace_back(type, BlockSource(type, most_bytes, random));
  }
  std::normal_distribution<float> normal(0.0f, 1.0f / std::sqrt(static_cast<float>(shape.hidden_size)));
  for (std::size_t i = 0; i < layout.tensors().size(); ++i) {
    const TensorView& tensor = layout.tensors()[i];
    if (tensor.dtype == DType::kF32) {
      std::vector<float> floats(static_cast<std::size_t>(tensor.num_elements()), 1.0f);
      if (tensor.num_rows() > 1) std::ranges::generate(floats, [&] { return normal(random); });  // a router
      KVASIR_CHECKED(writer.write(i, 0, std::as_bytes(std::span(floats))));
      continue;
    }
    const auto source = std::ranges::find(sources, tensor.dtype, [](const auto& each) { return each.first; });
    KVASIR_CHECKED(writer.write(i, 0, source->second.take(tensor.num_bytes())));
  }
  return writer.finish();
}

}  // namespace kvasir::testing
