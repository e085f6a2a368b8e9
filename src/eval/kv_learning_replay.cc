#include "eval/kv_learning_replay.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "engine/loaded_model.h"
#include "engine/policy_reader.h"
#include "io/model_fingerprint.h"
#include "kv/policy/forecast_network.h"
#include "learn/forecast_fit.h"
#include "learn/forecast_learning.h"
#include "learn/shadow_file.h"
#include "learn/shadow_judge.h"
#include "learn/shadow_watch.h"

namespace kvasir::eval {
namespace {

using Champion = std::optional<kv::ForecastNetwork>;
using Shadows = std::span<const learn::ShadowSequence>;

double sum_of_costs(const learn::ShadowCost& cost) { return std::accumulate(cost.of_plan.begin(), cost.of_plan.end(), 0.0); }

// The costs of the sequences under one forecast, as a part of those under another.
double ratio_of_costs(const learn::ShadowJudge& judge, const kv::ServedForecast* one, const kv::ServedForecast* other,
                      std::span<const learn::ShadowSequence* const> sequences) {
  double of_one = 0.0, of_other = 0.0;
  for (const learn::ShadowSequence* sequence : sequences) {
    const std::vector<learn::ShadowCost> costs = judge.costs(*sequence, std::vector{one, other});
    of_one += sum_of_costs(costs[0]);
    of_other += sum_of_costs(costs[1]);
  }
  return of_other > 0.0 ? of_one / of_other : 1.0;
}

std::vector<const learn::ShadowSequence*> stream_of(Shadows recorded, std::uint64_t seed) {
  std::vector<const learn::ShadowSequence*> stream;
  for (const learn::ShadowSequence& sequence : recorded) stream.push_back(&sequence);
  std::mt19937_64 random(seed);
  for (std::size_t left = stream.size(); left > 1; --left) std::swap(stream[left - 1], stream[random() % left]);
  return stream;
}

// Costs and rows of each sequence, which no replay changes.
std::vector<learn::KnownSequence> known_of(const kv::KvCacheConfig& kv, const Champion& champion, Shadows recorded) {
  const learn::ShadowJudge judge(kv);
  const auto served = champion ? std::optional(judge.served(*champion, 0)) : std::nullopt;
  const std::vector<const kv::ServedForecast*> forecasts = {nullptr, served ? &*served : nullptr};
  std::vector<learn::KnownSequence> known;
  for (const learn::ShadowSequence& sequence : recorded) {
    const std::vector<learn::ShadowCost> costs = judge.costs(sequence, forecasts);
    judge.add_rows(sequence, forecasts[1], known.emplace_back(costs[0], costs[1]).rows);
  }
  return known;
}

Result<LearningReplay> replay(const kv::KvCacheConfig& kv, const Champion& champion, Shadows recorded, std::span<const learn::KnownSequence> known,
                              std::uint64_t seed, std::int64_t num_sequences, const KeepGoing& keep_going) {
  constexpr double kSecondsBetween = 60.0;
  learn::ForecastLearning learning(kv, {.network = champion}, {.seed = seed});
  const std::vector<const learn::ShadowSequence*> stream = stream_of(recorded, seed);
  LearningReplay outcome{.seed = seed, .num_sequences = std::min(num_sequences, std::ssize(stream))};
  for (std::int64_t i = 0; i < outcome.num_sequences && outcome.promoted_after == 0; ++i) {
    if (keep_going && !keep_going()) return make_error(ErrorKind::kCancelled, "interrupted");
    const learn::ShadowSequence* sequence = stream[static_cast<std::size_t>(i)];
    const learn::LearningNews news =
        learning.add(*sequence, kSecondsBetween * static_cast<double>(i), &known[static_cast<std::size_t>(sequence - recorded.data())]);
    if (const learn::Duel* duel = learning.duel(); duel != nullptr) {
      outcome.duel_ratio = duel->ratio();
      outcome.log10_evidence = duel->log10_evidence();
      outcome.asked_ratio = duel->asked_ratio();
      outcome.asked_dropped_share = duel->asked_dropped_share();
    }
    if (news == learn::LearningNews::kPromoted) outcome.promoted_after = i + 1;
    if (learning.wants_training()) learning.train([&](double) { return !keep_going || keep_going(); });
  }
  outcome.num_challengers = learning.num_challengers();
  if (outcome.promoted_after == 0) return outcome;
  outcome.duel_ratio = learning.champion().cost_ratio;
  const learn::ShadowJudge judge(kv);
  const auto first = champion ? std::optional(judge.served(*champion, 0)) : std::nullopt;
  const auto behind = std::span(stream).subspan(static_cast<std::size_t>(outcome.promoted_after));
  outcome.num_held_out = std::ssize(behind);
  outcome.held_out_ratio = ratio_of_costs(judge, learning.served(), first ? &*first : nullptr, behind);
  return outcome;
}

// From nothing.
kv::ForecastNetwork learn_on(const kv::KvCacheConfig& kv, Shadows recorded, const KeepGoing& keep_going) {
  const learn::ShadowJudge judge(kv);
  std::vector<learn::ForecastRow> rows;
  for (const learn::ShadowSequence& sequence : recorded) judge.add_rows(sequence, nullptr, rows);
  return learn::fit_forecast(rows, judge.num_cells(), {}, [&](double) { return !keep_going || keep_going(); });
}

Result<std::vector<learn::ShadowSequence>> shadows_of(LoadedModel& loaded, std::span<const std::vector<TokenId>> texts, const LearningProgress& progress,
                                                      const KeepGoing& keep_going) {
  std::vector<learn::ShadowSequence> shadows;
  double num_read = 0.0;
  for (const std::vector<TokenId>& text : texts) {
    {
      const learn::ShadowWatch watch([&](learn::ShadowSequence sequence) { shadows.push_back(std::move(sequence)); });
      KVASIR_CHECKED(read_with_policy(loaded, text, watch, keep_going, kShadowStepTokens));
    }
    progress("shadows", ++num_read / static_cast<double>(texts.size()));
  }
  return shadows;
}

Result<learn::ShadowTraffic> traffic_of(LoadedModel& loaded, const std::string& fingerprint, std::span<const std::vector<std::vector<TokenId>>> texts,
                                        const std::string& file, const LearningProgress& progress, const KeepGoing& keep_going) {
  std::error_code ignored;
  if (!file.empty() && std::filesystem::exists(file, ignored)) return learn::read_shadows(file, fingerprint);
  learn::ShadowTraffic traffic;
  for (const std::vector<std::vector<TokenId>>& of_kind : texts) {
    KVASIR_TRY(auto shadows, shadows_of(loaded, of_kind, progress, keep_going));
    traffic.push_back(std::move(shadows));
  }
  if (!file.empty()) KVASIR_CHECKED(learn::write_shadows(file, fingerprint, traffic));
  return traffic;
}

}  // namespace

Status replay_kv_learning(const EngineConfig& config, std::span<const std::vector<std::vector<TokenId>>> texts, const std::string& shadow_file,
                          const LearningReplayOptions& options, const LearningProgress& progress, const KeepGoing& keep_going,
                          const std::function<Status(const LearningReplay&)>& each) {
  KVASIR_TRY(LoadedModel loaded, load_model_file(config, {}));
  const bool has_full_layers = std::ranges::any_of(loaded.kv.groups, [](const kv::LayerGroup& group) { return group.is_full(); });
  if (!has_full_layers) return make_error(ErrorKind::kUnmet, "shadows: each layer of this model has a window, so that no policy acts");
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(config.model_path));
  KVASIR_TRY(const learn::ShadowTraffic traffic, traffic_of(loaded, fingerprint, texts, shadow_file, progress, keep_going));
  if (traffic.empty() || traffic.front().size() < 2) return make_error(ErrorKind::kUnmet, "shadows: there are too few texts of the traffic before");
  const bool learns_champion = options.champion == FirstChampion::kOfText;
  const std::size_t num_of_champion =
      learns_champion ? std::min(traffic.front().size() / 2, static_cast<std::size_t>(options.num_champion_texts)) : 0;
  Champion champion;
  if (learns_champion) champion = learn_on(loaded.kv, std::span(traffic.front()).first(num_of_champion), keep_going);
  if (options.champion == FirstChampion::kCalibrated) champion = learn::whole_network_of(loaded.kv);
  if (options.champion == FirstChampion::kCalibrated && !champion) {
    return make_error(ErrorKind::kUsage, "--champion calibrated: the model has no forecast; kvasir calibrate-kv --forecast learns one", "champion");
  }
  for (const bool is_shifted : {false, true}) {
    if (is_shifted && traffic.size() < 2) break;
    const Shadows recorded = is_shifted ? Shadows(traffic.back()) : Shadows(traffic.front()).subspan(num_of_champion);
    const std::int32_t count = is_shifted ? options.num_shifted : options.num_unshifted;
    const std::vector<learn::KnownSequence> known = known_of(loaded.kv, champion, recorded);
    for (std::int32_t seed = 1; seed <= count; ++seed) {
      KVASIR_TRY(LearningReplay outcome,
                 replay(loaded.kv, champion, recorded, known, static_cast<std::uint64_t>(seed), options.num_sequences, keep_going));
      outcome.is_shifted = is_shifted;
      progress(is_shifted ? "replays after the shift" : "replays", static_cast<double>(seed) / count);
      KVASIR_CHECKED(each(outcome));
    }
  }
  return {};
}

}  // namespace kvasir::eval
