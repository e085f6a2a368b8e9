// What a forecast's plans would have cost a shadow, by the attention that came, and the rows that a shadow teaches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/kv_cache_config.h"
#include "kv/policy/served_forecast.h"
#include "learn/forecast_rows.h"
#include "learn/shadow_act.h"

namespace kvasir::learn {

inline constexpr std::array<double, 2> kDuelBudgets = {0.2, 0.1};

// The additive cost of the planner, with what came in place of the forecast: the sum over blocks of the head's weight x attention x
// loss. A block that was asked for counts as the planner counts one that is sure to be.
struct ShadowCost {
  std::array<double, kDuelBudgets.size()> of_plan{};  // by budget
  // Blocks that were asked for, through all plans and by their heads' weights, and those of them that the plans drop. 0 where
  // nobody can tell.
  double asked_for = 0.0, asked_for_dropped = 0.0;
};

// Thread safety: const methods from any thread.
class ShadowJudge {
 public:
  // Keeps what it needs of it.
  explicit ShadowJudge(const kv::KvCacheConfig& config);

  std::int32_t num_cells() const { return num_cells_; }
  // A network of all cells, cut into those of the groups.
  kv::ServedForecast served(const kv::ForecastNetwork& network, std::int64_t version) const;

  // By forecast; null: decayed mass. Requires: acts of this cache's groups.
  std::vector<ShadowCost> costs(const ShadowSequence& sequence, std::span<const kv::ServedForecast* const> forecasts) const;
  // The rows of a sequence's acts. Half of a block's chance is what came, the other half what `first` says: most texts ask for
  // nothing, and alone they would unlearn what a question needs. Where nobody can tell what came all of it is first's. Null, or
  // without a chance: what came counts alone.
  void add_rows(const ShadowSequence& sequence, const kv::ServedForecast* first, std::vector<ForecastRow>& rows) const;

 private:
  template <class Visit>
  void with_view(const ShadowAct& act, const kv::KvPolicySettings& settings, const Visit& visit) const;

  std::vector<kv::LayerGroup> groups_;
  kv::FormatCosts costs_;
  kv::KvFormat new_cells_;
  std::int32_t num_cells_ = 0;  // through all groups without a window
};

// The forecast that the cache was loaded with, of all cells: served() the other way. Nothing where there is none.
std::optional<kv::ForecastNetwork> whole_network_of(const kv::KvCacheConfig& config);

}  // namespace kvasir::learn
