#include "learn/forecast_learning.h"

#include <array>
#include <utility>

#include "base/check.h"

namespace kvasir::learn {
namespace {

constexpr double kChanceOfFalsePromotion = 0.05;

// The sum of 1 / (k (k + 1)) over all challengers is 1.
double evidence_to_win(std::int64_t challenger) {
  const auto k = static_cast<double>(challenger);
  return k * (k + 1.0) / kChanceOfFalsePromotion;
}

}  // namespace

ForecastLearning::ForecastLearning(const kv::KvCacheConfig& kv, Champion champion, const LearningConfig& config)
    : config_(config), judge_(kv), champion_(std::move(champion)), rows_(config.max_rows, config.seed) {
  if (champion_.network) champion_served_ = judge_.served(*champion_.network, champion_.version);
  first_served_ = champion_served_;
}

LearningNews ForecastLearning::add(const ShadowSequence& sequence, double now_s, const KnownSequence* known) {
  const LearningNews news = judge(sequence, now_s, known);
  of_sequence_.clear();
  if (known == nullptr) judge_.add_rows(sequence, first_served_ ? &*first_served_ : nullptr, of_sequence_);
  for (const ForecastRow& row : known != nullptr ? known->rows : of_sequence_) rows_.add(row);
  ++num_sequences_;
  ++num_since_;
  return news;
}

LearningNews ForecastLearning::judge(const ShadowSequence& sequence, double now_s, const KnownSequence* known) {
  if (state_ == KvLearningState::kOff) return LearningNews::kNone;
  const std::array<const kv::ServedForecast*, 3> forecasts = {nullptr, served(), challenger_served_ ? &*challenger_served_ : nullptr};
  const std::size_t first = known != nullptr ? 2 : 0, end = duel_ ? 3 : 2;
  std::vector<ShadowCost> costs = judge_.costs(sequence, std::span(forecasts).subspan(first, end - first));
  if (known != nullptr) costs.insert(costs.begin(), {known->decayed_mass, known->champion});
  if (champion_.network) loss_.note(costs[1], costs[0]);
  if (loss_.has_lost() && !duel_) {  // a challenger that is in a duel may be what is needed
    state_ = KvLearningState::kOff;
    return LearningNews::kTurnedOff;
  }
  return duel_ ? end_duel(duel_->note(costs[1], costs[2]), now_s) : LearningNews::kNone;
}

LearningNews ForecastLearning::end_duel(DuelVerdict verdict, double now_s) {
  if (verdict == DuelVerdict::kUndecided) return LearningNews::kNone;
  if (verdict == DuelVerdict::kChallenger) {
    const bool is_too_early = last_swap_s_ && now_s < *last_swap_s_ + config_.seconds_between_swaps;
    if (is_too_early) return LearningNews::kNone;  // the duel goes on until then
    promote(now_s);
  } else {
    num_since_ = config_.num_first_sequences;  // those of the duel are new to the next one
  }
  duel_.reset();
  challenger_.reset();
  challenger_served_.reset();
  state_ = KvLearningState::kCollects;
  return verdict == DuelVerdict::kChallenger ? LearningNews::kPromoted : LearningNews::kChampionStays;
}

void ForecastLearning::promote(double now_s) {
  champion_ = {.version = champion_.version + 1,
               .network = std::move(challenger_),
               .num_rows = num_challenger_rows_,
               .num_sequences = duel_->count(),
               .cost_ratio = duel_->ratio()};
  champion_served_ = judge_.served(*champion_.network, champion_.version);
  loss_ = {};
  num_since_ = 0;
  num_of_champion_ = 0;
  ++num_promotions_;
  last_swap_s_ = now_s;
}

bool ForecastLearning::wants_training() const {
  return state_ == KvLearningState::kCollects && num_since_ >= config_.num_first_sequences && !rows_.items().empty();
}

void ForecastLearning::train(const std::function<bool(double)>& keep_going) {
  CHECK(wants_training());
  FitOptions fit = config_.fit;
  fit.seed = config_.seed + static_cast<std::uint64_t>(num_challengers_) + 1;
  fit.from = champion_.network ? &*champion_.network : nullptr;
  bool is_whole = true;
  kv::ForecastNetwork network = fit_forecast(rows_.items(), judge_.num_cells(), fit, [&](double done) { return is_whole = keep_going(done); });
  if (!is_whole) return;
  num_challenger_rows_ = rows_.num_seen();
  challenger_ = std::move(network);
  challenger_served_ = judge_.served(*challenger_, champion_.version + 1);
  ++num_challengers_;
  duel_.emplace(evidence_to_win(++num_of_champion_));
  state_ = KvLearningState::kDuels;
}

}  // namespace kvasir::learn
