// One sample stream inside the engine: its tokens, how far their KV is computed, and where it lies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "admission/sequence_facts.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/ids.h"
#include "sched/scheduler_output.h"
#include "sched/stop_checker.h"

namespace kvasir::sched {

// The scheduler's view of a request; it becomes num_choices sequences.
struct SequenceRequest {
  RequestId request_id{};
  std::vector<TokenId> prompt_token_ids;
  std::int32_t num_choices = 1;
  std::int32_t priority = 0;  // lower runs first
  std::string tenant;         // whom it is served for
  std::string adapter;        // its tenant's adapters get equal shares; empty: the model as it is
  std::string cache_namespace;
  bool use_prefix_cache = true;
  std::int32_t expected_cached_tokens = 0;  // of the prompt, a guess for its place in the queue
  kv::KvPolicySettings kv_policy;
  std::string client_id;            // for logs; may be empty
  bool want_prompt_logits = false;  // of choice 0: a logit row for every prompt position
  std::int32_t first_prompt_logits = 0;  // .. from this position on
  StopCriteria stop;
  std::optional<TimePoint> start_deadline;  // dropped as expired when nothing of it ran by then
};

// Forced tokens that a step may add.
inline constexpr std::int32_t kMaxForcedTokens = 32;

enum class SequenceStatus : std::uint8_t { kWaiting, kRunning };

// Owned by the scheduler. There are no phases: a sequence has num_tokens() tokens, of which the KV of the
// first num_computed_tokens is stored, and every step closes some of the difference. Invariants: only a
// running sequence holds KV or has computed tokens; num_computed_tokens < num_tokens() between steps.
struct Sequence {
  SequenceId id{};  // rises with arrival
  RequestId request_id{};
  std::int32_t choice = 0;
  std::int32_t priority = 0;
  std::int32_t running_class = 0;  // its priority; by value at least 0 where it came beside others
  SequenceStatus status = SequenceStatus::kWaiting;
  bool is_held = false;  // waits for something outside the scheduler, see Scheduler::hold()
  admission::QueuePlace place;
  bool has_yielded = false;  // this running prompt has given its head start to an urgent request

  std::vector<TokenId> token_ids;  // prompt, then generated; survives preemption
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_computed_tokens = 0;
  std::int32_t num_scheduled_tokens = 0;  // committed ones, of the step in flight
  // Guesses of what it generates next, for the next step it runs in. Never part of token_ids, so nothing else
  // takes them for text. They are hints: dropping them at any time changes no token.
  std::vector<TokenId> draft_token_ids;
  std::int32_t num_scheduled_draft_tokens = 0;  // the first so many run in the step in flight
  std::int32_t num_cached_tokens = 0;           // of the prompt, found in the cache when it first started
  std::int32_t first_position = 0;              // from which it has computed since it last started

  admission::FairShare::Account* account = nullptr;  // its tenant's; never null once added
  admission::FairShare::Account* adapter_account = nullptr;  // its adapter's within that; likewise
  std::string cache_namespace;
  bool use_prefix_cache = true;
  std::int32_t expected_cached_tokens = 0;
  kv::KvPolicySettings kv_policy;
  std::string client_id;
  bool want_prompt_logits = false;
  // Runs layer by layer (prefill_only_batch.h): num_computed_tokens is then of the layer that it is at, and
  // may be all of them between steps, until the others of its batch are there too.
  bool is_prefill_only = false;
  std::int32_t first_hidden_row = 0;   // of a prefill-only sequence: where its hidden states are kept
  std::int32_t num_prompt_logits = 0;  // leading positions whose prompt logits were handed out
  StopCriteria stop;
  kv::SequenceKv kv;
  kv::BytesUse earlier_kv_bytes;  // of its holds before the last preemption

  std::optional<TimePoint> start_deadline;
  SequenceTimes times;
  std::int32_t num_preemptions = 0;

  // As its policy left it, or as it is where the policy has not acted in this stay in the cache; of a sequence
  // that never had one nothing.
  KvUsage kv_usage(const kv::Demotion& demotion) const;
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(token_ids.size()); }
  std::int32_t num_generated_tokens() const { return num_tokens() - num_prompt_tokens; }
  std::int32_t num_remaining_tokens() const { return num_tokens() - num_computed_tokens; }
  // All but its newest token is computed, so its next step generates.
  bool is_decoding() const { return num_remaining_tokens() == 1; }
  // It has generated, and a short run of forced tokens is to be computed before it goes on.
  bool has_forced_run() const {
    return num_generated_tokens() > 1 && has_computed_prompt() && !is_decoding() &&
           num_remaining_tokens() <= kMaxForcedTokens + 1;
  }
  // As long as answers of its tenant get, all together.
  std::int32_t expected_generated_tokens() const {
    return account->lengths.predict(num_generated_tokens(), stop.max_tokens);
  }
  bool has_computed_prompt() const { return num_computed_tokens >= num_prompt_tokens; }
  kv::KvHolder kv_holder() const;
  admission::SequenceFacts facts() const;
  // Its part of the step in flight. Requires: it has scheduled tokens and runs all layers.
  ScheduledSequence scheduled_part();
  // Appends what a step sampled, and num_forced tokens behind it, up to the token that ends the sequence; returns why it
  // does. Forgets the guesses. Requires: at most one sampled token more than guesses were scheduled.
  std::optional<FinishReason> append_sampled(std::span<const SampledToken> tokens, std::int32_t num_forced);
  // Prompt logits come from computing the prompt: until all were handed out, a cached prefix would swallow
  // some.
  bool awaits_prompt_logits() const { return want_prompt_logits && num_prompt_logits < num_prompt_tokens; }
};

// The running order, and the reverse of the order of preemption: lower class, then earlier arrival.
struct RunsBefore {
  bool operator()(const Sequence* a, const Sequence* b) const {
    return a->running_class != b->running_class ? a->running_class < b->running_class : a->id < b->id;
  }
};

}  // namespace kvasir::sched
