// How fast an engine is: prompts and generation, measured apart.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir::cli {

enum class BenchmarkKind : std::uint8_t {
  kPrompt,      // one prompt of n_prompt tokens: submit to first token
  kGeneration,  // batch streams, each behind depth tokens, n_gen more of each in lockstep
  kWorkload,    // prompts of a file, batch of them at once, up to n_gen tokens of each
};

struct BenchmarkCase {
  BenchmarkKind kind = BenchmarkKind::kPrompt;
  std::int32_t n_prompt = 0;
  std::int32_t n_gen = 0;
  std::int32_t depth = 0;
  std::int32_t batch = 1;
  KvParams kv = {};
  std::string speculate = "off";  // as the flag; of generation
  std::vector<std::string> adapters = {};  // that streams name in turn; empty: the model as it is
  // The answers' own tokens are guessed, each right with this probability. Below 0: guesses are real.
  double replay_accept = -1.0;

  // Prompt tokens of each stream; generation needs at least one to start from.
  std::int32_t prompt_tokens() const;
  // The adapter of stream or request `index`; empty: none.
  std::string adapter_of(std::size_t index) const { return adapters.empty() ? "" : adapters[index % adapters.size()]; }
};

// "prompt", "generation" or "workload".
std::string_view name_of(BenchmarkKind kind);

// The context that a case takes at most on an engine with steps of `max_num_batched_tokens`, 0 for the default.
std::int32_t context_tokens_of(const BenchmarkCase& test, std::int32_t max_num_batched_tokens);

struct Speed {
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
  std::vector<double> runs;
  double skipped_bytes_per_step = 0.0;  // of the weights: EngineStats
  double kv_bytes_share = 1.0;          // as Usage, of the last run
  std::string tokens_sha256;            // of each stream's first n_gen + 1 tokens: the tokens' ids, in 4 bytes each
  std::int64_t num_tokens = 0;          // of all runs
  std::int64_t num_draft_tokens = 0, num_draft_tokens_accepted = 0;

  // The figures of a stream.
  double tokens_per_step() const {
    return static_cast<double>(num_tokens) / static_cast<double>(num_tokens - num_draft_tokens_accepted);
  }
};
Speed summarize(std::vector<double> runs);

// Guesses that replay these tokens, each of which is another one with the probability 1 - share_right.
std::vector<TokenId> replayed(std::span<const TokenId> tokens, double share_right, std::int32_t vocab_size);

struct BenchmarkEvents {
  std::function<bool()> keep_going;                // asked many times a second; false ends it with kCancelled
  std::function<void(std::int32_t num_done)> run;  // after each run, the warm-up included
};

// Prompts are seeded random token ids, so that any model can run, one without a tokenizer too; answers are
// greedy and go on past the end of the text. One run warms up and does not count; each later one must give
// the same tokens. Blocks. Errors: as Engine::submit; kMachine when the KV cache was too small and a stream
// had to be computed again; kInternal when two runs gave different tokens. Requires: context_tokens_of(test)
// and test.batch fit the engine, which has no prefix cache.
Result<Speed> measure_speed(Engine& engine, const BenchmarkCase& test, std::int32_t repeat,
                            std::int32_t max_num_batched_tokens, const BenchmarkEvents& events);

}  // namespace kvasir::cli
