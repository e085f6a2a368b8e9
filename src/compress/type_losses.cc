#include "compress/type_losses.h"

#include <algorithm>

#include "compress/tensor_encoder.h"

namespace kvasir::compress {
namespace {

constexpr std::int64_t kSampledRows = 48;
constexpr DType kBudgetTypes[] = {DType::kQ2_K, DType::kQ3_K,   DType::kIQ4_XS, DType::kIQ4_NL, DType::kQ4_K,
                                  DType::kQ4_1, DType::kQ5_0,   DType::kQ5_K,   DType::kQ5_1,   DType::kQ6_K,
                                  DType::kQ8_0, DType::kF16};

}  // namespace

std::vector<DType> budget_types(std::int64_t row_length) {
  std::vector<DType> types;
  for (const DType type : kBudgetTypes) {
    if (row_length % info_of(type).block_elements == 0) types.push_back(type);
  }
  return types;
}

std::string_view part_of(const TensorView& tensor, bool is_tied) {
  constexpr std::string_view kParts[] = {"attn_qkv", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"};
  if (tensor.name == "output.weight" || (is_tied && tensor.name == "token_embd.weight")) return "head";
  for (const std::string_view part : kParts) {
    if (tensor.name.find(part) != std::string::npos) return part;
  }
  return "other";
}

Result<std::vector<TypeOption>> type_losses(const io::WeightSource& source, const TensorView& tensor,
                                            std::span<const float> mean_squares, ThreadPool& pool) {
  const std::int64_t length = tensor.row_length(), num_rows = tensor.num_rows();
  const std::int64_t count = std::min(kSampledRows, num_rows);
  const bool has_squares = std::ssize(mean_squares) == length;
  std::vector<float> rows(static_cast<std::size_t>(count * length));
  for (std::int64_t i = 0; i < count; ++i) {
    KVASIR_CHECKED(read_rows(source, tensor, i * num_rows / count, 1, std::span(rows).subspan(static_cast<std::size_t>(i * length), static_cast<std::size_t>(length))));
  }
  std::vector<TypeOption> options;
  for (const DType type : budget_types(length)) options.push_back({.type = type, .num_bytes = num_rows * row_bytes(type, length)});
  pool.parallel_for(std::ssize(options), [&](std::int64_t task) {
    TypeOption& option = options[static_cast<std::size_t>(task)];
    const float* importance = has_squares ? mean_squares.data() : nullptr;
    std::vector<std::byte> encoded(static_cast<std::size_t>(count * row_bytes(option.type, length)));
    encode_rows(option.type, rows.data(), importance, count, length, encoded.data());
    const EncodingError error = error_of_rows(option.type, rows.data(), importance, count, length, encoded.data());
    option.loss = error.errors * static_cast<double>(num_rows) / static_cast<double>(count);
  });
  return options;
}

}  // namespace kvasir::compress
