#include "sim/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kv/policy/registry.h"
#include "sim/seeded_random.h"

namespace kvasir::sim {
namespace {

constexpr std::array<std::int32_t, 8> kWindows = {1, 2, 15, 16, 17, 33, 48, 70};
constexpr std::array<std::int32_t, 4> kHashBits = {1, 4, 64, 64};
constexpr std::array<double, 5> kBudgets = {0.7, 0.4, 0.3, 0.15, 0.1};
constexpr std::int32_t kHeadDim = 32;
constexpr std::array<std::int32_t, 4> kWindowHeadDims = {32, 32, 64, 96};  // mostly as the others

kv::KvCacheConfig make_kv(SeededRandom& random) {
  kv::KvCacheConfig kv;
  const std::int32_t shape = random.between(0, 99);
  // Mostly too small for comfort: the interesting things happen when blocks run out.
  const std::int32_t most_blocks = random.percent(70) ? 18 : 60;
  if (shape < 85) {
    kv.groups.push_back(
        {.num_blocks = random.between(4, most_blocks), .cells_per_block = random.between(1, 3), .head_dim = kHeadDim});
  }
  if (shape >= 45) {
    kv.groups.push_back({.num_blocks = random.between(4, most_blocks),
                         .window_tokens = random.pick<std::int32_t>(kWindows),
                         .cells_per_block = random.between(1, 3),
                         .head_dim = random.pick<std::int32_t>(kWindowHeadDims)});
  }
  kv.prefix_cache = random.percent(75);
  kv.prefix_hash_key = {random.bits(), random.bits()};
  kv.prefix_hash_bits = random.pick<std::int32_t>(kHashBits);
  return kv;
}

// None for half of the requests; few different ones, so that some share.
kv::KvPolicySettings make_policy(SeededRandom& random) {
  if (random.percent(50)) return {};
  kv::KvPolicySettings settings;
  constexpr std::size_t kNumLadders = 3;  // which come first, and are the likeliest
  const std::size_t num_policies = random.percent(50) ? kNumLadders : kv::policies().size();
  settings.policy = kv::policies()[random.bits() % num_policies];
  settings.budget_share = random.pick<double>(kBudgets);
  if (random.percent(20)) settings.max_lost_share = 0.02;
  return settings;
}

sched::SchedulerConfig make_scheduler(SeededRandom& random) {
  sched::SchedulerConfig config;
  config.max_num_seqs = random.between(1, 7);
  config.max_num_batched_tokens = config.max_num_seqs + random.between(0, random.percent(50) ? 12 : 90);
  config.max_chunk_tokens = random.percent(50) ? 0 : random.between(1, 40);
  if (random.percent(50)) config.max_step_ms = 0.01 * random.between(1, 30);
  if (random.percent(80)) {
    config.prefill_only = {.max_tokens = random.between(1, 150), .num_layers = random.between(1, 4)};
  }
  return config;
}

std::vector<TokenId> random_tokens(SeededRandom& random, std::int32_t count, std::int32_t vocab_size) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) token = random.between(0, vocab_size - 1);
  return tokens;
}

sched::StopCriteria make_stop(SeededRandom& random, std::int32_t vocab_size) {
  sched::StopCriteria stop;
  stop.max_tokens = random.percent(8) ? 0 : random.between(1, random.percent(50) ? 20 : 100);
  if (random.percent(40)) stop.eos_token_ids = random_tokens(random, random.between(1, 2), vocab_size);
  if (random.percent(20)) stop.stop_token_ids = random_tokens(random, 1, vocab_size);
  if (random.percent(20)) stop.min_tokens = random.between(1, 20);
  return stop;
}

SimRequest make_request(SeededRandom& random, std::int32_t index, std::int32_t vocab_size,
                        std::span<const std::vector<TokenId>> documents) {
  SimRequest out;
  out.arrival_step = random.percent(50) ? random.between(0, 5) : random.between(0, 150);
  out.sample_seed = random.bits();
  sched::SequenceRequest& request = out.request;
  request.request_id = RequestId{static_cast<std::uint64_t>(index)};
  // A shared beginning, then something of its own.
  const std::vector<TokenId>& document = documents[random.bits() % documents.size()];
  const auto shared = document.begin() + random.between(0, static_cast<std::int32_t>(document.size()));
  request.prompt_token_ids.assign(document.begin(), shared);
  for (const TokenId token :
       random_tokens(random, random.between(request.prompt_token_ids.empty() ? 1 : 0, 20), vocab_size)) {
    request.prompt_token_ids.push_back(token);
  }
  request.num_choices = random.percent(75) ? 1 : random.between(2, 4);
  request.priority = random.percent(70) ? 0 : random.between(-1, 2);
  request.cache_namespace = random.percent(60) ? "" : fmt::format("tenant-{}", random.between(1, 2));
  request.use_prefix_cache = !random.percent(10);
  request.want_prompt_logits = random.percent(12);
  request.kv_policy = make_policy(random);
  request.stop = make_stop(random, vocab_size);
  if (random.percent(15)) {  // to be scored
    request.num_choices = 1;
    request.use_prefix_cache = false;
    request.want_prompt_logits = random.percent(70);
    request.kv_policy = {};
    request.stop.max_tokens = 0;
  }
  if (random.percent(10)) {
    request.start_deadline = time_of_step(out.arrival_step + random.between(0, 60));
  }
  while (random.percent(20)) {
    out.cancels.push_back({.choice = random.between(0, request.num_choices - 1),
                           .step = out.arrival_step + random.between(0, random.percent(50) ? 4 : 80),
                           .moment = static_cast<Moment>(random.between(0, 2))});
  }
  if (random.percent(10)) out.stop_string_after_tokens = random.between(1, 20);
  return out;
}

// As a calibration does.
void weigh_cells(kv::KvCacheConfig& kv, SeededRandom& random) {
  constexpr std::array<float, 3> kWeights = {0.1f, 1.0f, 20.0f};
  for (kv::LayerGroup& group : kv.groups) {
    if (!group.is_full()) continue;
    for (std::int32_t cell = 0; cell < group.cells_per_block; ++cell) {
      group.cell_weights.push_back(random.pick<float>(kWeights));
    }
  }
}

// Draws the order of waiting requests, and the tenant and the adapter of each.
void choose_order(Workload& workload, SeededRandom& random) {
  workload.scheduler.waiting = {.policy = static_cast<WaitingPolicy>(random.between(0, 2)),
                                .ageing_ms = random.percent(50) ? 0.0 : random.between(5, 50),
                                .tenant_quantum_tokens = static_cast<double>(random.between(1, 100))};
  if (random.percent(50)) workload.scheduler.ttft_target_ms = random.between(1, 100);
  for (SimRequest& item : workload.requests) {
    sched::SequenceRequest& request = item.request;
    request.tenant = random.percent(60) ? "" : fmt::format("tenant-{}", random.between(1, 3));
    request.adapter = random.percent(60) ? "" : fmt::format("adapter-{}", random.between(1, 3));
    const auto num_prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size());
    request.expected_cached_tokens = random.between(0, num_prompt_tokens - 1);
  }
}

// Turns that are owed while steps are so short that streams are left out for them.
void owe_turns(Workload& workload, SeededRandom& random) {
  workload.scheduler.waiting = {.policy = WaitingPolicy::kSloValue,
                                .tenant_quantum_tokens = static_cast<double>(random.between(1, 30))};
  workload.scheduler.max_num_seqs = std::max(workload.scheduler.max_num_seqs, 3);
  workload.scheduler.max_num_batched_tokens = random.between(40, 130);
  workload.scheduler.max_chunk_tokens = 0;
  workload.scheduler.max_step_ms = 0.001 * random.between(10, 60);
  for (SimRequest& item : workload.requests) {
    item.request.tenant = fmt::format("tenant-{}", random.between(1, 3));
    item.request.adapter = random.percent(60) ? "" : fmt::format("adapter-{}", random.between(1, 3));
    if (item.request.stop.max_tokens == 0) item.request.stop.max_tokens = random.between(1, 40);
  }
}

// Prompts are computed in whole chunks, so that policies find what others have cached.
void keep_chunks_whole(Workload& workload, SeededRandom& random) {
  workload.kv.prefix_cache = true;
  workload.kv.prompt_chunk_tokens = kv::kTokensPerBlock * random.between(1, 2);
  workload.scheduler.max_chunk_tokens = workload.kv.prompt_chunk_tokens;
  workload.scheduler.max_num_batched_tokens = std::max(workload.scheduler.max_num_batched_tokens, random.between(60, 130));
  workload.scheduler.max_step_ms = 0.0;
}

// Sequences so long, with budgets so small, that some of their cells are dropped.
void lengthen_answers(Workload& workload, SeededRandom& random) {
  for (SimRequest& item : workload.requests) {
    if (!item.request.kv_policy.is_lossy() || random.percent(20)) continue;
    item.request.kv_policy.policy = &kv::ladder_policy();
    item.request.kv_policy.budget_share = random.percent(50) ? 0.18 : 0.14;
    item.request.stop.max_tokens = random.between(100, 250);
  }
}

}  // namespace

Workload make_workload(std::uint64_t seed) {
  SeededRandom random(seed);
  Workload workload;
  workload.kv = make_kv(random);
  workload.scheduler = make_scheduler(random);
  workload.vocab_size = random.percent(30) ? 2 : random.between(3, 60);
  SeededRandom of_weights(mix(seed, 6));
  if (of_weights.percent(40)) weigh_cells(workload.kv, of_weights);
  std::vector<std::vector<TokenId>> documents;
  for (std::int32_t i = random.between(1, 3); i > 0; --i) {
    documents.push_back(random_tokens(random, random.between(0, 110), workload.vocab_size));
  }
  const std::int32_t num_requests = random.between(2, 18);
  for (std::int32_t i = 0; i < num_requests; ++i) {
    workload.requests.push_back(make_request(random, i, workload.vocab_size, documents));
  }
  SeededRandom of_public(mix(seed, 8));
  while (of_public.percent(40)) {
    std::vector<TokenId> beginning = documents[of_public.bits() % documents.size()];
    beginning.resize(std::min<std::size_t>(beginning.size(), of_public.bits() % 70));
    workload.kv.public_prefixes.push_back(std::move(beginning));
  }
  SeededRandom of_order(mix(seed, 7));
  if (of_order.percent(60)) choose_order(workload, of_order);
  SeededRandom of_turns(mix(seed, 9));
  if (of_turns.percent(15)) owe_turns(workload, of_turns);
  SeededRandom of_lengths(mix(seed, 4));
  if (of_lengths.percent(40)) lengthen_answers(workload, of_lengths);
  SeededRandom of_chunks(mix(seed, 13));
  if (of_chunks.percent(40)) keep_chunks_whole(workload, of_chunks);
  // Demotions have to wait for what others leave behind, or find no room.
  SeededRandom of_pages(mix(seed, 5));
  if (of_pages.percent(50)) workload.kv.max_extra_pages = of_pages.between(0, 2);
  std::ranges::sort(workload.requests, {}, [](const SimRequest& item) {
    return std::pair(item.arrival_step, item.request.request_id);
  });
  return workload;
}

std::string describe(const Workload& workload) {
  std::string text;
  for (const kv::LayerGroup& group : workload.kv.groups) {
    text += fmt::format("group: {} blocks, window {}\n", group.num_blocks, group.window_tokens);
  }
  for (const auto& prefix : workload.kv.public_prefixes)
    text += fmt::format("{} public tokens\n", prefix.size());
  text += fmt::format(
      "prefix cache {}, hash bits {}; max seqs {}, batched tokens {}, chunk {}; prefill-only up to {} tokens "
      "through {} layers; vocabulary {}\n",
      workload.kv.prefix_cache ? "on" : "off", workload.kv.prefix_hash_bits, workload.scheduler.max_num_seqs,
      workload.scheduler.max_num_batched_tokens, workload.scheduler.max_chunk_tokens,
      workload.scheduler.prefill_only.max_tokens, workload.scheduler.prefill_only.num_layers,
      workload.vocab_size);
  for (const SimRequest& item : workload.requests) {
    const sched::SequenceRequest& request = item.request;
    text += fmt::format(
        "request {}: step {}, prompt {}, n {}, max_tokens {}, priority {}, namespace '{}'{}{}\n",
        static_cast<std::uint64_t>(request.request_id), item.arrival_step, request.prompt_token_ids.size(),
        request.num_choices, request.stop.max_tokens, request.priority, request.cache_namespace,
        request.use_prefix_cache ? "" : ", no cache", request.want_prompt_logits ? ", prompt logits" : "");
    if (request.kv_policy.is_lossy()) {
      text += fmt::format("  policy {} with {:.0f}% of the bytes, at most {} lost\n",
                          request.kv_policy.policy->name(), 100 * request.kv_policy.budget_share,
                          request.kv_policy.max_lost_share);
    }
  }
  return text;
}

}  // namespace kvasir::sim
