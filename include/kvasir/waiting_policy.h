// Who of those that wait is next.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir {

enum class WaitingPolicy : std::uint8_t {
  kFifo,      // as they came
  kPriority,  // classes with ageing, as they came within one
  kSloValue,  // classes with ageing, the least served tenant, then who gains most for the KV it holds
};

// In the order of the enum.
inline constexpr std::array<std::string_view, 3> kWaitingPolicyNames = {"fifo", "priority", "slo-value"};

}  // namespace kvasir
