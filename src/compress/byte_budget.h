// The types of tensors that lose least within so many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "quant/dtype.h"

namespace kvasir::compress {

// What a tensor takes and loses in one type.
struct TypeOption {
  DType type = DType::kF32;
  std::int64_t num_bytes = 0;
  double loss = 0.0;
};

// The place of each tensor's option such that the sum of losses is small and that of bytes at most `budget_bytes`: a price
// of a byte is sought at which all tensors' best options fit, and what is left then goes to the upgrades that save most a
// byte. Nothing: not even the smallest options fit. A pure function.
std::optional<std::vector<std::size_t>> choose_within(std::span<const std::vector<TypeOption>> tensors,
                                                      std::int64_t budget_bytes);

}  // namespace kvasir::compress
