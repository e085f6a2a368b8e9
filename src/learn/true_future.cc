#include "learn/true_future.h"

#include <algorithm>
#include <cstdint>

#include "kv/policy/priced_ladder.h"

namespace kvasir::learn {

void TrueFuture::plan(const kv::PolicyView& view, std::vector<kv::CellAction>& actions) const {
  kv::PricedLadder ladder(view);
  if (ladder.excess_bytes() <= 0) return;
  kv::DecayedMass mass(view);
  kv::BlockForecast forecast;
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    mass.forecast(cell, forecast);
    const std::vector<float> later = record_ != nullptr ? record_->later(view.group, cell, view.num_full_blocks) : std::vector<float>();
    if (!later.empty()) {
      forecast.attention = later;
      std::ranges::fill(forecast.asked, 0.0f);
    }
    ladder.add_cell(forecast);
  }
  ladder.plan(actions);
}

}  // namespace kvasir::learn
