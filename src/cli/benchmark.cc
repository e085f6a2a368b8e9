#include "cli/benchmark.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <utility>

#include "cli/lockstep_window.h"
#include "store/sha256.h"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kPromptSeed = 20240229;
constexpr std::chrono::milliseconds kQuestionInterval{50};

struct RunOutcome {
  double prompt_seconds = 0.0;      // submit until every stream had a token
  double generation_seconds = 0.0;  // from then until each had n_gen more
  std::vector<std::vector<TokenId>> tokens;
  double kv_bytes_share = 1.0;
};

// Tokens that the stream which starts first gets while the last one still reads its prompt.
std::int32_t head_start_tokens(const BenchmarkCase& test, std::int32_t max_num_batched_tokens) {
  constexpr std::int32_t kFewestByDefault = 512;
  const std::int32_t step_tokens =
      max_num_batched_tokens > 0 ? max_num_batched_tokens : std::max(kFewestByDefault, test.batch);
  const std::int64_t prompt_room = std::max(1, step_tokens - test.batch + 1);
  const std::int64_t all_prompts = std::int64_t{test.batch} * test.prompt_tokens();
  return static_cast<std::int32_t>((all_prompts + prompt_room - 1) / prompt_room) + 2;
}

std::int32_t max_tokens_of(const BenchmarkCase& test, std::int32_t max_num_batched_tokens) {
  if (test.kind == BenchmarkKind::kPrompt) return 1;
  return head_start_tokens(test, max_num_batched_tokens) + test.n_gen;
}

std::vector<Request> make_requests(const BenchmarkCase& test, std::int32_t vocab_size,
                                   std::int32_t max_tokens) {
  std::mt19937_64 random(kPromptSeed);
  std::vector<Request> requests(static_cast<std::size_t>(test.batch));
  for (Request& request : requests) {
    for (std::int32_t i = 0; i < test.prompt_tokens(); ++i) {
      request.prompt_token_ids.push_back(
          static_cast<TokenId>(random() % static_cast<std::uint64_t>(vocab_size)));
    }
    request.sampling.temperature = 0.0f;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = max_tokens;
    request.use_prefix_cache = false;
    request.kv = test.kv;
    request.speculates = test.speculate != "off";
  }
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].adapter = test.adapter_of(i);
  return requests;
}

Result<RunOutcome> run_once(Engine& engine, const BenchmarkCase& test, std::vector<Request> requests,
                            const std::function<bool()>& keep_going) {
  auto window = std::make_shared<LockstepWindow>(requests.size(), test.n_gen);
  std::vector<Submission> submissions;
  for (std::size_t stream = 0; stream < requests.size(); ++stream) {
    submissions.push_back({std::move(requests[stream]), [window, stream](const RequestOutput& output) {
                             window->record(stream, output);
                           }});
  }
  if (!keep_going()) return make_error(ErrorKind::kCancelled, "interrupted");
  const auto begin = LockstepWindow::Clock::now();
  KVASIR_TRY(const std::vector<RequestId> ids, engine.submit(std::move(submissions)));
  bool interrupted = false;
  while (!window->wait_until_closed(kQuestionInterval) && !interrupted) interrupted = !keep_going();
  for (RequestId id : ids) engine.cancel(id);
  const auto times = window->wait_until_finished();
  if (interrupted) return make_error(ErrorKind::kCancelled, "interrupted");
  if (!times) return std::unexpected(times.error());
  const auto seconds = [](auto duration) { return std::chrono::duration<double>(duration).count(); };
  return RunOutcome{seconds(times->begin - begin), seconds(times->end - times->begin), window->take_tokens(),
                    window->kv_bytes_share()};
}

// Streams may run on a little after the window, so only what all runs have is compared.
bool same_tokens(const RunOutcome& a, const RunOutcome& b) {
  for (std::size_t i = 0; i < a.tokens.size(); ++i) {
    const std::size_t num_tokens = std::min(a.tokens[i].size(), b.tokens[i].size());
    if (!std::equal(a.tokens[i].begin(), a.tokens[i].begin() + static_cast<std::ptrdiff_t>(num_tokens),
                    b.tokens[i].begin())) {
      return false;
    }
  }
  return true;
}

// The tokens that a run has in any case.
std::string tokens_sha256(const BenchmarkCase& test, const RunOutcome& outcome) {
  store::Sha256 sha256;
  for (const std::vector<TokenId>& tokens : outcome.tokens) {
    for (std::size_t i = 0; i < std::min(tokens.size(), static_cast<std::size_t>(test.n_gen) + 1); ++i) {
      const auto id = static_cast<std::uint32_t>(tokens[i]);
      const std::array bytes = {std::byte(id), std::byte(id >> 8), std::byte(id >> 16), std::byte(id >> 24)};
      sha256.update(bytes);
    }
  }
  return sha256.hex_digest();
}

double tokens_per_second(const BenchmarkCase& test, const RunOutcome& outcome) {
  if (test.kind == BenchmarkKind::kPrompt) return test.n_prompt / outcome.prompt_seconds;
  return double{1} * test.batch * test.n_gen / outcome.generation_seconds;
}

}  // namespace

std::int32_t BenchmarkCase::prompt_tokens() const {
  return kind == BenchmarkKind::kPrompt ? n_prompt : std::max(1, depth);
}

std::string_view name_of(BenchmarkKind kind) {
  switch (kind) {
    case BenchmarkKind::kPrompt: return "prompt";
    case BenchmarkKind::kGeneration: return "generation";
    case BenchmarkKind::kWorkload: break;
  }
  return "workload";
}

std::int32_t context_tokens_of(const BenchmarkCase& test, std::int32_t max_num_batched_tokens) {
  return test.prompt_tokens() + max_tokens_of(test, max_num_batched_tokens);
}

std::vector<TokenId> replayed(std::span<const TokenId> tokens, double share_right, std::int32_t vocab_size) {
  std::mt19937_64 random(kPromptSeed);
  std::uniform_real_distribution<double> draw;
  std::vector<TokenId> guesses(tokens.begin(), tokens.end());
  for (TokenId& token : guesses) {
    if (draw(random) >= share_right) token = (token + 1) % vocab_size;
  }
  return guesses;
}

Speed summarize(std::vector<double> runs) {
  std::vector<double> sorted = runs;
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  const double median = sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
  return {.median = median, .min = sorted.front(), .max = sorted.back(), .runs = std::move(runs)};
}

Result<Speed> measure_speed(Engine& engine, const BenchmarkCase& test, std::int32_t repeat,
                            std::int32_t max_num_batched_tokens, const BenchmarkEvents& events) {
  std::vector<Request> requests =
      make_requests(test, engine.model_info().vocab_size, max_tokens_of(test, max_num_batched_tokens));
  const EngineStats before = engine.stats();
  double kv_bytes_share = 1.0;
  std::vector<Request> first = requests;
  const bool replays = test.replay_accept >= 0.0 && test.speculate != "off";
  for (Request& request : first) request.speculates = request.speculates && !replays;
  KVASIR_TRY(const RunOutcome warm_up, run_once(engine, test, std::move(first), events.keep_going));
  events.run(1);
  for (std::size_t i = 0; i < requests.size() && replays; ++i) {
    requests[i].replayed_token_ids = replayed(warm_up.tokens[i], test.replay_accept, engine.model_info().vocab_size);
  }
  std::vector<double> runs;
  for (std::int32_t i = 0; i < repeat; ++i) {
    KVASIR_TRY(const RunOutcome outcome, run_once(engine, test, requests, events.keep_going));
    events.run(i + 2);
    if (!same_tokens(warm_up, outcome)) {
      return make_error(ErrorKind::kInternal,
                        fmt::format("bench: {} with batch {} and depth {} gave different tokens in two runs",
                                    name_of(test.kind), test.batch, test.depth));
    }
    runs.push_back(tokens_per_second(test, outcome));
    kv_bytes_share = outcome.kv_bytes_share;
  }
  const EngineStats after = engine.stats();
  if (after.num_preemptions != before.num_preemptions) {
    return make_error(
        ErrorKind::kMachine,
        fmt::format("bench: memory: the KV cache does not hold {} streams of {} tokens (see --memory)",
                    test.batch, context_tokens_of(test, max_num_batched_tokens)));
  }
  Speed speed = summarize(std::move(runs));
  const std::int64_t num_tokens = after.num_generated_tokens - before.num_generated_tokens;
  speed.skipped_bytes_per_step =
      static_cast<double>(after.skipped_weight_bytes - before.skipped_weight_bytes) * test.batch /
      static_cast<double>(num_tokens);
  speed.kv_bytes_share = kv_bytes_share;
  speed.tokens_sha256 = tokens_sha256(test, warm_up);
  speed.num_tokens = num_tokens;
  speed.num_draft_tokens = after.num_draft_tokens - before.num_draft_tokens;
  speed.num_draft_tokens_accepted = after.num_draft_tokens_accepted - before.num_draft_tokens_accepted;
  return speed;
}

}  // namespace kvasir::cli
