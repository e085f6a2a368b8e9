// The forecast that new sequences are served with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kv/policy/forecast_network.h"

namespace kvasir::kv {

// Immutable once it is served. A sequence keeps the one that it began with.
struct ServedForecast {
  std::int64_t version = 0;                        // rises with each one that was learned from traffic
  std::vector<std::shared_ptr<const ForecastNetwork>> by_group;  // null where nothing is forecast, as for a window

  const ForecastNetwork* of(std::int32_t group) const {
    const auto at = static_cast<std::size_t>(group);
    return at < by_group.size() ? by_group[at].get() : nullptr;
  }
};

}  // namespace kvasir::kv
