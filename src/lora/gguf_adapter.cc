#include "lora/gguf_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/printable.h"
#include "io/weight_source.h"
#include "lora/tensor_pairs.h"
#include "quant/dtype.h"

namespace kvasir::lora {
namespace {

Status check_kind(const io::Metadata& metadata, const model::ModelConfig& config) {
  struct Wanted {
    std::string_view key, value;
  };
  for (const Wanted wanted : {Wanted{"general.type", "adapter"}, Wanted{"adapter.type", "lora"},
                              Wanted{"general.architecture", config.architecture}}) {
    KVASIR_TRY(const std::string value, metadata.get_string(wanted.key));
    if (value == wanted.value) continue;
    return make_error(ErrorKind::kBadFile, fmt::format("{}: must be \"{}\", is \"{}\"", wanted.key, wanted.value, printable(value)));
  }
  return {};
}

std::vector<float> numbers_of(const TensorView& tensor) {
  std::vector<float> numbers(static_cast<std::size_t>(tensor.num_elements()));
  const quant::UnpackRow unpack = info_of(tensor.dtype).unpack_row;
  for (std::int64_t row = 0; row < tensor.num_rows(); ++row) {
    unpack(tensor.row(row), tensor.row_length(), numbers.data() + row * tensor.row_length());
  }
  return numbers;
}

}  // namespace

std::int64_t num_gguf_numbers(const std::string& path) {
  const auto source = io::open_gguf(path);
  std::int64_t count = 0;
  if (!source) return count;
  for (const TensorView& tensor : (*source)->tensors()) count += tensor.num_elements();
  return count;
}

Result<std::vector<AdapterTensor>> read_gguf_adapter(const std::string& path, const model::ModelConfig& config) {
  KVASIR_TRY(const auto source, io::open_gguf(path));
  KVASIR_CHECKED(check_kind(source->metadata(), config));
  KVASIR_TRY(const double alpha, source->metadata().get_float("adapter.lora.alpha"));
  TensorPairs pairs;
  constexpr std::string_view kA = ".lora_a", kB = ".lora_b";
  for (const TensorView& tensor : source->tensors()) {
    const std::string name = tensor.name.substr(0, tensor.name.size() - std::min(tensor.name.size(), kA.size()));
    if (tensor.name.ends_with(kA)) {
      KVASIR_CHECKED(pairs.add_a(name, tensor.num_rows(), tensor.row_length(), numbers_of(tensor)));
    } else if (tensor.name.ends_with(kB)) {
      KVASIR_CHECKED(pairs.add_b(name, tensor.num_rows(), tensor.row_length(), numbers_of(tensor)));
    } else {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: neither lora_a nor lora_b", printable(tensor.name)));
    }
  }
  KVASIR_TRY(std::vector<AdapterTensor> tensors, pairs.finish());
  for (AdapterTensor& tensor : tensors) tensor.factor = static_cast<float>(alpha / tensor.rank);
  return tensors;
}

}  // namespace kvasir::lora
