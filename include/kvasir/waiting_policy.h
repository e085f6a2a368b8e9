// The order of waiting requests.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir {

enum class WaitingPolicy : std::uint8_t {
  kFifo,      // as they came
  kPriority,  // classes with ageing, as they came within one
  kSloValue,  // classes with ageing, the least served tenant, then the most benefit per byte of KV
};

// In the order of the enum.
inline constexpr std::array<std::string_view, 3> kWaitingPolicyNames = {"fifo", "priority", "slo-value"};

}  // namespace kvasir
