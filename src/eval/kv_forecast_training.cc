#include "eval/kv_forecast_training.h"

#include <algorithm>
#include <random>
#include <utility>

#include "engine/kv_calibration.h"
#include "engine/loaded_model.h"
#include "engine/policy_reader.h"
#include "eval/kv_planted_facts.h"
#include "learn/forecast_fit.h"
#include "learn/forecast_rows.h"

namespace kvasir::eval {
namespace {

constexpr std::int32_t kBlocks = kForecastWindowTokens / kv::kTokensPerBlock;
constexpr std::int32_t kEchoTokens = 128, kEchoBehindMark = 192;
constexpr std::size_t kTextsPerCycle = 4, kEchoInCycle = 3, kFactsInCycle = 1;
constexpr double kReadingShare = 0.9;  // of the time

// The last one's horizon ends before the text does: a policy does not see a text's end.
std::vector<std::int32_t> marks() { return {kBlocks / 5, kBlocks * 3 / 8, kBlocks / 2, kBlocks * 5 / 8, kBlocks - learn::kHorizonBlocks - 1}; }

// The text with a span from before each mark said again behind it.
std::vector<TokenId> echo_of(const std::vector<TokenId>& text, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> echo = text;
  for (const std::int32_t mark : marks()) {
    const std::int64_t at = std::int64_t{mark} * kv::kTokensPerBlock;
    const auto from = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(at - kEchoTokens));
    std::copy_n(text.begin() + from, kEchoTokens, echo.begin() + at + kEchoBehindMark);
  }
  return echo;
}

// One of a cycle says again what it said, one asks for what it said, the others stay. Each cycle begins one later, so that texts
// of several kinds in turn get each of these.
std::vector<TokenId> text_to_learn_from(const LoadedModel& loaded, const std::vector<TokenId>& text, std::size_t index) {
  const std::size_t in_cycle = (index + index / kTextsPerCycle) % kTextsPerCycle;
  if (in_cycle == kEchoInCycle) return echo_of(text, index);
  if (in_cycle == kFactsInCycle && loaded.tokenizer) return plant_facts(*loaded.tokenizer, text, index);
  return text;
}

std::int32_t num_cells(const LoadedModel& loaded) {
  std::int32_t count = 0;
  for (const kv::LayerGroup& group : loaded.kv.groups) count += group.is_full() ? group.cells_per_block : 0;
  return count;
}

// It says 1 for all.
kv::ForecastNetwork network_of_means(std::int32_t num_cells) {
  kv::ForecastNetwork network;
  network.hidden_biases.resize(static_cast<std::size_t>(num_cells));
  network.output_biases.resize(static_cast<std::size_t>(num_cells));
  return network;
}

}  // namespace

Result<LearnedKvForecast> train_kv_forecast(const EngineConfig& config, std::span<const std::vector<TokenId>> texts,
                                            const std::function<void(double)>& progress, const KeepGoing& keep_going) {
  KVASIR_TRY(LoadedModel loaded, load_model_file(config, {}));
  const std::int32_t cells = num_cells(loaded);
  if (cells == 0) return make_error(ErrorKind::kUnmet, "forecast: each layer of this model has a window, so that nothing is forecast");
  std::vector<learn::ForecastRow> rows, held_out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const learn::ForecastRows seen(marks());
    KVASIR_CHECKED(read_with_policy(loaded, text_to_learn_from(loaded, texts[i], i), seen, keep_going));
    std::vector<learn::ForecastRow> taken = seen.take();
    std::vector<learn::ForecastRow>& target = i + 1 < texts.size() ? rows : held_out;
    target.insert(target.end(), taken.begin(), taken.end());
    progress(kReadingShare * static_cast<double>(i + 1) / static_cast<double>(texts.size()));
  }
  bool was_stopped = false;
  const kv::ForecastNetwork network = learn::fit_forecast(rows, cells, {}, [&](double done) {
    progress(kReadingShare + (1.0 - kReadingShare) * done);
    was_stopped = keep_going && !keep_going();
    return !was_stopped;
  });
  if (was_stopped) return make_error(ErrorKind::kCancelled, "interrupted");
  LearnedKvForecast learned = {.numbers = kv_forecast_numbers(network)};
  learned.num_rows = std::ssize(rows);
  learned.held_out_loss = learn::forecast_loss(network, held_out);
  learned.mean_loss = learn::forecast_loss(network_of_means(cells), held_out);
  return learned;
}

}  // namespace kvasir::eval
