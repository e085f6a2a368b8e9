// How calls of tools in answers ended.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace kvasir::server::observe {

// With whole arguments; the answer ended within; begun, and no call after all. The order of api::CallEnd.
inline constexpr std::array<std::string_view, 3> kCallEndNames = {"complete", "cut", "broken"};

// Thread safety: any thread.
struct ToolCallCounts {
  std::array<std::atomic<std::int64_t>, kCallEndNames.size()> by_end{};
};

}  // namespace kvasir::server::observe
