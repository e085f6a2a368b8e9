// Test support: safetensors files from a header that is written down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::io {

// The length, the header as it is, and so many data bytes (0, 1, 2, ...).
std::string safetensors_bytes(std::string_view header, std::size_t num_data_bytes);

// F32 tensors with the values 0, 1, 2, ... of each; shapes as in the header: the last axis varies fastest.
struct F32Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
};
std::string f32_safetensors(const std::vector<F32Tensor>& tensors);

}  // namespace kvasir::io
