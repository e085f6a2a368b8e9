// Rates of one stream at a chosen acceptance: an answer that is known is guessed, each token wrong with a probability.
//
// Usage: kvasir_replay_bench MODEL [--share-right X,X] [--guesses N,N] [--gen N] [--depth N] [--repeat N] [--threads N]
// Prints for each share and number of guesses a step: tokens a step, the step's time over that of one token, and the rate
// over the rate without guesses. The tokens must be those of the first run. Exit codes: 0, 1 (a token differs), 2 (usage).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/loaded_model.h"
#include "kv/kv_cache_manager.h"
#include "runtime/model_runner.h"
#include "sched/scheduler.h"
#include "store/model_store.h"

namespace kvasir {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model;
  std::vector<double> shares_right = {0.6, 0.8, 0.9};
  std::vector<double> guesses = {1, 2, 3, 5, 7, 11, 15};
  std::int32_t num_tokens = 96, depth = 64, num_repeats = 3;
  int num_threads = 2;
};

struct Run {
  std::vector<TokenId> tokens;
  std::int64_t num_steps = 0;
  double seconds = 0.0;  // of the steps behind the prompt

  double tokens_per_step() const {
    return static_cast<double>(tokens.size() - 1) / static_cast<double>(num_steps);
  }
  double step_ms() const { return 1e3 * seconds / static_cast<double>(num_steps); }
  double rate() const { return static_cast<double>(tokens.size() - 1) / seconds; }
};

std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    numbers.push_back(std::strtod(std::string(text.substr(begin, end - begin)).c_str(), nullptr));
    begin = end + 1;
  }
  return numbers;
}

bool read(std::span<char*> arguments, Options& options) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--")) {
      options.model = name;
      continue;
    }
    if (++i == arguments.size()) return false;
    const std::vector<double> values = numbers_of(arguments[i]);
    if (name == "--share-right")
      options.shares_right = values;
    else if (name == "--guesses")
      options.guesses = values;
    else if (name == "--gen")
      options.num_tokens = static_cast<std::int32_t>(values[0]);
    else if (name == "--depth")
      options.depth = static_cast<std::int32_t>(values[0]);
    else if (name == "--repeat")
      options.num_repeats = static_cast<std::int32_t>(values[0]);
    else if (name == "--threads")
      options.num_threads = static_cast<int>(values[0]);
    else
      return false;
  }
  return !options.model.empty() && options.num_tokens > 1 && options.depth > 0 && options.num_repeats > 0;
}

// One greedy answer by the real scheduler and model.
class Replay {
 public:
  Replay(LoadedModel& loaded, const Options& options) : loaded_(loaded), options_(options) {
    params_.temperature = 0.0f;
    params_.ignore_eos = true;
  }

  // `known`: the tokens to guess; empty: nothing is guessed.
  Run run(std::span<const TokenId> known, double share_right, std::size_t num_guesses) {
    kv::KvCacheManager kv(loaded_.kv);
    sched::Scheduler scheduler({.max_num_seqs = 1, .max_num_batched_tokens = 512}, kv);
    runtime::ModelRunner runner(*loaded_.model, *loaded_.backend, loaded_.kv_views(kv.cells()),
                                loaded_.prefill_only_memory(kv.cells(), kv.prefill_only().group()),
                                loaded_.max_logit_rows);
    const SequenceId id = *scheduler.add(request(), {});
    Run run;
    while (scheduler.has_unfinished()) {
      const auto begin = Clock::now();
      step(scheduler, runner, run.tokens);
      const bool is_prompt = run.tokens.size() <= 1;
      if (!is_prompt) {
        run.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
        ++run.num_steps;
      }
      if (!run.tokens.empty() && !known.empty())
        guess(scheduler, id, known.subspan(run.tokens.size()), share_right, num_guesses);
    }
    return run;
  }

 private:
  sched::SequenceRequest request() const {
    sched::SequenceRequest request;
    for (std::int32_t i = 0; i < options_.depth; ++i)
      request.prompt_token_ids.push_back(static_cast<TokenId>(5 + 37 * i % 1009));
    request.use_prefix_cache = false;
    request.stop.max_tokens = options_.num_tokens;
    return request;
  }
  void step(sched::Scheduler& scheduler, runtime::ModelRunner& runner, std::vector<TokenId>& tokens) {
    const sched::SchedulerOutput& output = scheduler.schedule({});
    const std::vector<runtime::SamplingTask> tasks(
        output.sequences.size(), {.params = &params_, .allowed = sampling::AllowedTokens::all()});
    static_cast<void>(runner.run(output, tasks));
    for (const sched::SequenceUpdate& update : scheduler.update(runner.sampled(), {})) {
      for (const sched::SampledToken& sampled : update.tokens) tokens.push_back(sampled.token);
    }
  }
  void guess(sched::Scheduler& scheduler, SequenceId id, std::span<const TokenId> coming, double share_right,
             std::size_t num_guesses) {
    std::vector<TokenId> draft(
        coming.begin(), coming.begin() + static_cast<std::ptrdiff_t>(std::min(num_guesses, coming.size())));
    std::uniform_real_distribution<double> draw;
    for (TokenId& token : draft) {
      if (draw(random_) >= share_right) token = token == 7 ? 8 : 7;
    }
    scheduler.set_draft(id, draft);
  }

  LoadedModel& loaded_;
  const Options& options_;
  SamplingParams params_;
  std::mt19937 random_{1};
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

int measure(LoadedModel& loaded, const Options& options) {
  Replay replay(loaded, options);
  const std::vector<TokenId> known = replay.run({}, 0.0, 0).tokens;
  int exit_code = 0;
  fmt::print("right   guesses   tokens/step   step/one row   rate/without        min .. max\n");
  for (const double share : options.shares_right) {
    for (const double guesses : options.guesses) {
      std::vector<double> tokens, steps, rates;
      for (std::int32_t i = 0; i < options.num_repeats; ++i) {
        const Run plain = replay.run({}, 0.0, 0);
        const Run guessed = replay.run(known, share, static_cast<std::size_t>(guesses));
        if (plain.tokens != known || guessed.tokens != known) exit_code = 1;
        tokens.push_back(guessed.tokens_per_step());
        steps.push_back(guessed.step_ms() / plain.step_ms());
        rates.push_back(guessed.rate() / plain.rate());
      }
      fmt::print("{:5.2f} {:9.0f} {:13.2f} {:14.2f} {:14.2f} {:11.2f} .. {:.2f}\n", share, guesses,
                 median(tokens), median(steps), median(rates), std::ranges::min(rates),
                 std::ranges::max(rates));
    }
  }
  if (exit_code != 0) fmt::print(stderr, "kvasir_replay_bench: a token differs from the first run's\n");
  return exit_code;
}

int main_of(std::span<char*> arguments) {
  Options options;
  if (!read(arguments, options)) {
    fmt::print(stderr,
               "usage: kvasir_replay_bench MODEL [--share-right X,X] [--guesses N,N] [--gen N] [--depth N] "
               "[--repeat N] "
               "[--threads N]\n");
    return 2;
  }
  EngineConfig config;
  const auto path = store::resolve_model(options.model);
  config.model_path = path ? *path : options.model;
  config.num_threads = options.num_threads;
  config.kv_cache_tokens = options.depth + options.num_tokens + 64;
  auto loaded = load_model_file(config, {});
  if (!loaded) {
    fmt::print(stderr, "kvasir_replay_bench: {}\n", loaded.error().message);
    return 3;
  }
  return measure(*loaded, options);
}

}  // namespace
}  // namespace kvasir

int main(int argc, char** argv) { return kvasir::main_of({argv, static_cast<std::size_t>(argc)}); }
