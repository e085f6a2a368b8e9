#include "cli/workload_speed.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "eval/run_requests.h"
#include "store/sha256.h"

namespace kvasir::cli {
namespace {

struct WorkloadRun {
  std::vector<eval::Generated> answers;
  double seconds = 0.0;
  std::int64_t num_tokens = 0;
};

Request request_of(const eval::WorkloadItem& item, const BenchmarkCase& test) {
  Request request;
  request.prompt_token_ids = item.prompt_token_ids;
  request.sampling.temperature = 0.0f;
  request.sampling.max_tokens = item.max_tokens > 0 ? item.max_tokens : test.n_gen;
  request.sampling.seed = item.seed;
  request.use_prefix_cache = false;
  request.kv = test.kv;
  request.speculates = test.speculate != "off";
  return request;
}

Result<WorkloadRun> run_all(Engine& engine, const std::vector<Request>& requests, std::int32_t num_streams,
                            const BenchmarkEvents& events) {
  using Clock = std::chrono::steady_clock;
  WorkloadRun run;
  const auto begin = Clock::now();
  const auto next = [&](std::size_t index) { return requests[index]; };
  KVASIR_TRY(run.answers, eval::run_requests(engine, requests.size(), static_cast<std::size_t>(num_streams), next,
                                             events.keep_going, [](std::size_t) {}));
  run.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const eval::Generated& answer : run.answers) run.num_tokens += std::ssize(answer.token_ids);
  return run;
}

bool same_answers(const WorkloadRun& a, const WorkloadRun& b) {
  for (std::size_t i = 0; i < a.answers.size(); ++i) {
    if (a.answers[i].token_ids != b.answers[i].token_ids) return false;
  }
  return true;
}

std::string sha256_of(const WorkloadRun& run) {
  store::Sha256 sha256;
  for (const eval::Generated& answer : run.answers) {
    for (const TokenId token : answer.token_ids) {
      const auto id = static_cast<std::uint32_t>(token);
      const std::array bytes = {std::byte(id), std::byte(id >> 8), std::byte(id >> 16), std::byte(id >> 24)};
      sha256.update(bytes);
    }
  }
  return sha256.hex_digest();
}

}  // namespace

Result<Speed> measure_workload(Engine& engine, const std::vector<eval::WorkloadItem>& items, const BenchmarkCase& test,
                               std::int32_t repeat, const BenchmarkEvents& events) {
  std::vector<Request> requests;
  for (const eval::WorkloadItem& item : items) {
    requests.push_back(request_of(item, test));
    requests.back().adapter = test.adapter_of(requests.size() - 1);
  }
  const bool replays = test.replay_accept >= 0.0 && test.speculate != "off";
  std::vector<Request> first = requests;
  for (Request& request : first) request.speculates = request.speculates && !replays;
  KVASIR_TRY(const WorkloadRun warm_up, run_all(engine, first, test.batch, events));
  events.run(1);
  for (std::size_t i = 0; i < requests.size() && replays; ++i) {
    requests[i].replayed_token_ids =
        replayed(warm_up.answers[i].token_ids, test.replay_accept, engine.model_info().vocab_size);
  }
  const EngineStats before = engine.stats();
  std::vector<double> runs;
  for (std::int32_t i = 0; i < repeat; ++i) {
    KVASIR_TRY(const WorkloadRun run, run_all(engine, requests, test.batch, events));
    events.run(i + 2);
    if (!same_answers(run, warm_up)) {
      return make_error(ErrorKind::kInternal, "bench: the workload gave different tokens in two runs");
    }
    runs.push_back(static_cast<double>(run.num_tokens) / run.seconds);
  }
  const EngineStats after = engine.stats();
  Speed speed = summarize(std::move(runs));
  speed.tokens_sha256 = sha256_of(warm_up);
  speed.num_tokens = after.num_generated_tokens - before.num_generated_tokens;
  speed.num_draft_tokens = after.num_draft_tokens - before.num_draft_tokens;
  speed.num_draft_tokens_accepted = after.num_draft_tokens_accepted - before.num_draft_tokens_accepted;
  return speed;
}

}  // namespace kvasir::cli
