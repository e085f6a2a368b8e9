// Learns a model's forecast from shadows, one challenger after another, and says when one takes the champion's place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kv/policy/served_forecast.h"
#include "kvasir/kv_learning_stats.h"
#include "learn/duel.h"
#include "learn/forecast_fit.h"
#include "learn/reservoir.h"
#include "learn/shadow_judge.h"

namespace kvasir::learn {

struct LearningConfig {
  std::uint64_t seed = 1;
  std::size_t max_rows = 65'536;
  std::int32_t num_first_sequences = 100;  // before the first challenger; later ones wait for as many new ones
  FitOptions fit = {.num_steps = 4000, .num_rows_per_step = 512};
  double seconds_between_swaps = 3600.0;
};

// What is served, beside what it was measured at.
struct Champion {
  std::int64_t version = 0;  // 0: it was not learned from traffic
  std::optional<kv::ForecastNetwork> network = {};  // of all cells; nothing: decayed mass
  std::uint64_t num_rows = 0;                       // that it was learned from
  std::int64_t num_sequences = 0;                   // of the duel that it won
  double cost_ratio = 1.0;                          // its costs in that duel, beside those of the champion before
};

// The first champion's costs and rows of a sequence.
struct KnownSequence {
  ShadowCost decayed_mass, champion;
  std::vector<ForecastRow> rows;
};

enum class LearningNews : std::uint8_t { kNone, kPromoted, kChampionStays, kTurnedOff };

// Each sequence is judged first and learned from afterwards, so that duels are between forecasts that know nothing of it. Over
// all challengers of a champion together a false promotion has a chance of at most 5%.
//
// Thread safety: none. train() only reads what add() changes: see there.
class ForecastLearning {
 public:
  ForecastLearning(const kv::KvCacheConfig& kv, Champion champion, const LearningConfig& config);

  // A sequence of never-evict shadows, in the order of time. `now_s`: of a clock that only goes forward.
  // `known`: from somebody who plays streams again, until the first promotion; null: it is computed.
  LearningNews add(const ShadowSequence& sequence, double now_s, const KnownSequence* known = nullptr);

  // Whether the next challenger shall be learned now.
  bool wants_training() const;
  // Learns it; keep_going is asked with the share that is done, and false gives it up.
  void train(const std::function<bool(double)>& keep_going);

  KvLearningState state() const { return state_; }
  const Champion& champion() const { return champion_; }
  const kv::ServedForecast* served() const { return champion_served_ ? &*champion_served_ : nullptr; }  // null: decayed mass
  std::int64_t num_sequences() const { return num_sequences_; }
  std::uint64_t num_rows() const { return rows_.num_seen(); }
  std::int64_t num_challengers() const { return num_challengers_; }
  std::int64_t num_promotions() const { return num_promotions_; }
  const Duel* duel() const { return duel_ ? &*duel_ : nullptr; }

 private:
  LearningNews judge(const ShadowSequence& sequence, double now_s, const KnownSequence* known);
  LearningNews end_duel(DuelVerdict verdict, double now_s);
  void promote(double now_s);

  const LearningConfig config_;
  const ShadowJudge judge_;
  Champion champion_;
  // The forecast that served at first, so that questions are not unlearned by one promotion after another.
  std::optional<kv::ServedForecast> first_served_;
  std::optional<kv::ServedForecast> champion_served_;
  std::optional<kv::ForecastNetwork> challenger_;
  std::optional<kv::ServedForecast> challenger_served_;
  std::uint64_t num_challenger_rows_ = 0;
  std::optional<Duel> duel_;
  LossWatch loss_;
  Reservoir<ForecastRow> rows_;
  std::vector<ForecastRow> of_sequence_;  // of add(), kept for its memory
  KvLearningState state_ = KvLearningState::kCollects;
  std::int64_t num_sequences_ = 0, num_since_ = 0;  // since the last duel
  std::int64_t num_challengers_ = 0, num_of_champion_ = 0, num_promotions_ = 0;
  std::optional<double> last_swap_s_;
};

}  // namespace kvasir::learn
