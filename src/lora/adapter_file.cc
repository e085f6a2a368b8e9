#include "lora/adapter_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "base/printable.h"
#include "lora/gguf_adapter.h"
#include "lora/peft_adapter.h"

namespace kvasir::lora {
namespace {

Status check_tensor(const AdapterTensor& tensor, std::span<const model::NamedMatrix> matrices) {
  const auto matrix = std::ranges::find(matrices, tensor.name, &model::NamedMatrix::name);
  if (matrix == matrices.end()) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: the model has no such matrix that an adapter can change",
                                                       printable(tensor.name)));
  }
  if (tensor.num_inputs != matrix->matrix->row_length || tensor.num_outputs != matrix->total_rows) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: of {} inputs and {} outputs, the model's has {} and {}", printable(tensor.name),
                                  tensor.num_inputs, tensor.num_outputs, matrix->matrix->row_length, matrix->total_rows));
  }
  const auto is_finite = [](float value) { return std::isfinite(value); };
  if (std::ranges::all_of(tensor.a, is_finite) && std::ranges::all_of(tensor.b, is_finite) && is_finite(tensor.factor)) return {};
  return make_error(ErrorKind::kBadFile, fmt::format("{}: a number is none", printable(tensor.name)));
}

// FNV-1a over words.
std::uint64_t version_of(std::span<const AdapterTensor> tensors) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3u; };
  for (const AdapterTensor& tensor : tensors) {
    for (const char c : tensor.name) add(static_cast<unsigned char>(c));
    add(std::bit_cast<std::uint32_t>(tensor.factor));
    for (const std::vector<float>* numbers : {&tensor.a, &tensor.b}) {
      for (const float number : *numbers) add(std::bit_cast<std::uint32_t>(number));
    }
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace

std::int64_t max_read_bytes(const std::string& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  return static_cast<std::int64_t>(sizeof(float)) * (is_folder ? num_peft_numbers(path) : num_gguf_numbers(path));
}

Result<AdapterFile> read_adapter(const std::string& path, const model::Model& model) {
  const auto read = [&]() -> Result<AdapterFile> {
    AdapterFile file;
    const bool is_folder = std::filesystem::is_directory(path);
    KVASIR_TRY(file.tensors, is_folder ? read_peft_adapter(path, model.config()) : read_gguf_adapter(path, model.config()));
    if (file.tensors.empty()) return make_error(ErrorKind::kBadFile, "the adapter changes nothing");
    std::ranges::sort(file.tensors, {}, &AdapterTensor::name);
    for (const AdapterTensor& tensor : file.tensors) KVASIR_CHECKED(check_tensor(tensor, model.layer_matrices()));
    file.version = version_of(file.tensors);
    return file;
  };
  if (!std::filesystem::exists(path)) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: there is no such adapter", printable_line(path)));
  }
  Result<AdapterFile> file = read();
  if (file || file.error().message.starts_with(path)) return file;
  return make_error(file.error().kind, fmt::format("{}: {}", printable_line(path), file.error().message));
}

}  // namespace kvasir::lora
