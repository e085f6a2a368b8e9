// The unit of KV storage, of format and of eviction: 16 tokens of one (layer, KV head).
#pragma once

#include <cstdint>

#include "base/checked_math.h"

namespace kvasir::kv {

inline constexpr std::int32_t kTokensPerBlock = 16;

// How the numbers of a cell are stored. A block carries the tag of its cells.
enum class KvCellFormat : std::uint8_t { kF16, kF32 };

constexpr std::int32_t blocks_for(std::int32_t num_tokens) { return ceil_div(num_tokens, kTokensPerBlock); }

}  // namespace kvasir::kv
