#include "io/model_summary.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace kvasir::io {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

struct FileType {
  std::int64_t number;  // general.file_type
  std::string_view name;
};
constexpr FileType kFileTypes[] = {
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},     {3, "Q4_1"},    {7, "Q8_0"},     {8, "Q5_0"},
    {9, "Q5_1"},    {10, "Q2_K"},   {11, "Q3_K_S"},  {12, "Q3_K_M"}, {13, "Q3_K_L"},  {14, "Q4_K_S"},
    {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},  {18, "Q6_K"},   {19, "IQ2_XXS"}, {20, "IQ2_XS"},
    {21, "Q2_K_S"}, {22, "IQ3_XS"}, {23, "IQ3_XXS"}, {24, "IQ1_S"},  {25, "IQ4_NL"},  {26, "IQ3_S"},
    {27, "IQ3_M"},  {28, "IQ2_S"},  {29, "IQ2_M"},   {30, "IQ4_XS"}, {31, "IQ1_M"},   {32, "BF16"},
    {36, "TQ1_0"},  {37, "TQ2_0"},  {38, "MXFP4"},   {39, "NVFP4"},  {40, "Q1_0"},
};

std::string string_or_empty(const Metadata& metadata, std::string_view key) {
  auto value = metadata.find_string(key);
  return value && *value ? std::move(**value) : std::string();
}

std::int64_t int_or_zero(const Metadata& metadata, std::string_view key) {
  const auto value = metadata.find_int(key, 0, kMaxInt);
  return value ? value->value_or(0) : 0;
}

std::string quantization_of(const WeightSource& source) {
  const auto file_type = source.metadata().find_int("general.file_type", 0, kMaxInt);
  if (file_type && *file_type) {
    const auto* known = std::ranges::find(kFileTypes, **file_type, &FileType::number);
    if (known != std::end(kFileTypes)) return std::string(known->name);
  }
  std::array<std::int64_t, kNumDTypes> bytes_of{};
  for (const TensorView& tensor : source.tensors()) {
    bytes_of[static_cast<std::size_t>(tensor.dtype)] += tensor.num_bytes();
  }
  std::map<std::string, std::int64_t> unsupported_bytes;
  for (const UnsupportedTensor& tensor : source.unsupported()) {
    unsupported_bytes[tensor.type] += tensor.num_bytes;
  }
  const auto most = std::ranges::max_element(bytes_of) - bytes_of.begin();
  for (const auto& [type, bytes] : unsupported_bytes) {
    if (bytes > bytes_of[static_cast<std::size_t>(most)]) return type;
  }
  return std::string(name_of(static_cast<DType>(most)));
}

}  // namespace

ModelSummary summarize(const WeightSource& source) {
  const Metadata& metadata = source.metadata();
  ModelSummary summary;
  summary.name = string_or_empty(metadata, "general.name");
  summary.architecture = string_or_empty(metadata, "general.architecture");
  summary.quantization = quantization_of(source);
  summary.license = string_or_empty(metadata, "general.license");
  for (const TensorView& tensor : source.tensors()) {
    summary.num_parameters += tensor.num_elements();
    summary.weight_bytes += tensor.num_bytes();
  }
  for (const UnsupportedTensor& tensor : source.unsupported()) {
    summary.num_parameters += tensor.num_elements;
    summary.weight_bytes += tensor.num_bytes;
  }
  summary.context_length_tokens = int_or_zero(metadata, summary.architecture + ".context_length");
  summary.num_layers = int_or_zero(metadata, summary.architecture + ".block_count");
  if (const auto tokens = metadata.find_strings("tokenizer.ggml.tokens"); tokens && *tokens != nullptr) {
    summary.vocab_size = static_cast<std::int64_t>((*tokens)->size());
  } else {
    summary.vocab_size = int_or_zero(metadata, "tokenizer.num_tokens");
  }
  summary.has_chat_template = !string_or_empty(metadata, "tokenizer.chat_template").empty();
  return summary;
}

}  // namespace kvasir::io
