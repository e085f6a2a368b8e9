// kvasir_sim: the scheduler and the KV cache against seeded random workloads.
//   kvasir_sim [--first N] [--count N]   runs seeds N, N + 1, ...; exit code 1 at the first broken promise
//   kvasir_sim --seed N [--verbose]      replays one seed
#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "sim/simulation.h"

namespace {

using kvasir::sim::Coverage;
using kvasir::sim::Simulation;

struct Options {
  std::uint64_t first = 0;
  std::uint64_t count = 10'000;
  bool verbose = false;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--verbose") {
      options.verbose = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const std::string_view text = argv[++i];
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
    if (flag == "--first" || flag == "--seed") {
      options.first = value;
      if (flag == "--seed") options.count = 1;
    } else if (flag == "--count") {
      options.count = value;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

volatile std::sig_atomic_t seed_running = 0;

// A CHECK inside the scheduler aborts; the seed must not be lost with it.
void name_the_seed(int) {
  fmt::print(stderr, "seed {} aborted; replay: kvasir_sim --seed {} --verbose\n",
             static_cast<long>(seed_running), static_cast<long>(seed_running));
  std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (!options) {
    fmt::print(stderr, "usage: kvasir_sim [--first N] [--count N] | --seed N [--verbose]\n");
    return 2;
  }
  std::signal(SIGABRT, name_the_seed);
  Coverage total;
  for (std::uint64_t seed = options->first; seed < options->first + options->count; ++seed) {
    seed_running = static_cast<std::sig_atomic_t>(seed);
    Simulation simulation(seed, options->verbose);
    const std::string failure = simulation.run();
    if (!failure.empty()) {
      fmt::print(stderr, "seed {} failed: {}\nreplay: kvasir_sim --seed {} --verbose\n", seed, failure, seed);
      return 1;
    }
    total.add(simulation.coverage());
  }
  fmt::print(
      "{} seeds passed: {} steps; {} sequences: {} finished, {} cancelled, {} expired; {} requests refused; "
      "{} preemptions, {} steps without some streams, {} prefix hit tokens, {} borrowed ones, {} blocks copied for that, "
      "{} evictions, {} deduplicated blocks, {} coarser cells in {} rounds beyond the first of a step, {} moved, "
      "{} coarser or dropped ones in the journal, {} budgets looked at, {} layer passes; {} were "
      "held, policies of {} frozen; {} guesses ran, {} of them right; {} tokens were forced\n",
      options->count, total.num_steps, total.num_sequences, total.num_finished, total.num_cancelled,
      total.num_expired, total.num_refused, total.num_preemptions, total.num_skips, total.num_hit_tokens, total.num_borrowed_tokens, total.num_block_copies,
      total.num_evictions, total.num_deduplicated, total.num_conversions, total.num_rounds, total.num_moves,
      total.num_journaled, total.num_budgets, total.num_layer_passes, total.num_holds, total.num_freezes, total.num_draft_tokens, total.num_accepted_tokens,
      total.num_forced_tokens);
  return 0;
}
