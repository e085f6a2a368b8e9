// Rules out what a guide does not allow.
#pragma once

#include <cstdint>
#include <span>

namespace kvasir::sampling {

// Sets logits whose bit is not set to -inf. Bit i % 64 of word i / 64 is token i's; tokens beyond are not allowed.
void keep_allowed(std::span<float> logits, std::span<const std::uint64_t> allowed);

}  // namespace kvasir::sampling
