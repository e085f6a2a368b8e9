#include "kernels/byte_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kvasir::kernels {
namespace {

constexpr float kGreatestCode = 127.0f;

std::int64_t group_bytes(std::int64_t k) { return byte_codes_bytes(k) + kPackedRows * std::int64_t{sizeof(float)}; }

void pack_group(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* packed) {
  std::memset(packed, 0, static_cast<std::size_t>(group_bytes(k)));
  auto* const codes = static_cast<std::int8_t*>(packed);
  auto* const scales = reinterpret_cast<float*>(codes + byte_codes_bytes(k));
  for (int row = 0; row < num_rows; ++row) {
    const auto* weights = reinterpret_cast<const float*>(static_cast<const char*>(rows) + row * row_bytes);
    float greatest = 0.0f;
    for (std::int64_t i = 0; i < k; ++i) greatest = std::max(greatest, std::fabs(weights[i]));
    scales[row] = greatest / kGreatestCode;
    if (scales[row] == 0.0f) continue;
    for (std::int64_t i = 0; i < k; ++i) {
      const float code = std::clamp(std::nearbyint(weights[i] / scales[row]), -kGreatestCode, kGreatestCode);
      codes[i * kPackedRows + row] = static_cast<std::int8_t>(code);
    }
  }
}

}  // namespace

FormatKernels byte_column_packing() { return {true, group_bytes, pack_group, nullptr}; }

}  // namespace kvasir::kernels
