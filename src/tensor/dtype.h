// The element types a weight tensor can have, and how their bytes are grouped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir {

// kQ* are GGUF block formats: a block of `block_elements` consecutive elements of one row shares its scales.
enum class DType : std::uint8_t { kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ4_K, kQ5_K, kQ6_K };
inline constexpr int kNumDTypes = 11;

struct DTypeInfo {
  DType dtype;
  std::string_view name;        // as GGUF tools print it
  std::int32_t block_elements;  // a row's length is a multiple of this
  std::int32_t block_bytes;
};

inline constexpr std::array<DTypeInfo, kNumDTypes> kDTypeInfos = {{
    {DType::kF32, "F32", 1, 4},
    {DType::kF16, "F16", 1, 2},
    {DType::kBF16, "BF16", 1, 2},
    {DType::kQ8_0, "Q8_0", 32, 34},
    {DType::kQ4_0, "Q4_0", 32, 18},
    {DType::kQ4_1, "Q4_1", 32, 20},
    {DType::kQ5_0, "Q5_0", 32, 22},
    {DType::kQ5_1, "Q5_1", 32, 24},
    {DType::kQ4_K, "Q4_K", 256, 144},
    {DType::kQ5_K, "Q5_K", 256, 176},
    {DType::kQ6_K, "Q6_K", 256, 210},
}};

constexpr const DTypeInfo& info_of(DType dtype) { return kDTypeInfos[static_cast<std::size_t>(dtype)]; }
constexpr std::string_view name_of(DType dtype) { return info_of(dtype).name; }

// Bytes of one row of `num_elements`, which must be a multiple of the block length.
constexpr std::int64_t row_bytes(DType dtype, std::int64_t num_elements) {
  return num_elements / info_of(dtype).block_elements * info_of(dtype).block_bytes;
}

}  // namespace kvasir
