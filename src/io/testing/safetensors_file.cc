#include "io/testing/safetensors_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

namespace kvasir::io {
namespace {

std::string with_length(std::string_view header) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(header);
}

}  // namespace

std::string safetensors_bytes(std::string_view header, std::size_t num_data_bytes) {
  std::string bytes = with_length(header);
  for (std::size_t i = 0; i < num_data_bytes; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

std::string f32_safetensors(const std::vector<F32Tensor>& tensors) {
  std::string header = "{", data;
  for (const F32Tensor& tensor : tensors) {
    const std::size_t begin = data.size();
    std::int64_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= size;
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(i);
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", tensor.name, fmt::join(tensor.shape, ","), begin, data.size());
  }
  return with_length(header + "}") + data;
}

}  // namespace kvasir::io
