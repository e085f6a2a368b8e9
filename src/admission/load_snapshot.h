// Running and waiting work between two steps, for the estimate of a first token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admission/prompt_work.h"
#include "admission/seat_reservation.h"
#include "admission/sequence_facts.h"
#include "admission/step_rates.h"

namespace kvasir::admission {

// One tenant's sequences of one class: those that wait, and the prompts of those that run.
struct WaitingGroup {
  std::string tenant;
  std::int32_t priority = 0;
  double served_tokens = 0.0;    // of the tenant, see FairShare
  std::int32_t num_running = 0;  // of the tenant
  double recent_share = 0.0;     // the tenant's part of what all tenants were given lately
  std::int32_t num_sequences = 0;
  PromptWork prompts;          // of those that wait, without what is expected to be cached
  PromptWork running_prompts;  // the rest of the running prompts
  // Both, for prefill-only sequences, which run apart.
  PromptWork prefill_only, running_prefill_only;
  // Both, for each prompt that shorter ones need not wait for.
  std::vector<PromptWork> long_ones, running_long;

  // Prompts are still to be computed.
  bool has_backlog() const { return num_sequences > 0 || running_prompts.num_tokens > 0; }
};

struct AbsentTenant {
  std::string tenant;
  double served_tokens = 0.0;
};

// Running and waiting work between two steps: plain data for other threads.
struct LoadSnapshot {
  std::vector<double> busy_seats_ms;  // of those that run: until each is expected to end
  std::int32_t num_free_seats = 0;
  // How long all of them and those that wait are expected to keep theirs, and how many that are.
  double hold_ms = 0.0;
  std::int32_t num_holding = 0;
  StepRates rates;  // beside the streams that run; all 0: nothing is known yet
  // For requests that nothing is known of yet: the length of an answer, and what each of its tokens takes when
  // no seat is free.
  std::int32_t usual_answer_tokens = 0;
  double full_step_ms = 0.0;
  double typical_prompt_ms = 0.0;  // of 512 tokens, with nothing beside it
  std::vector<WaitingGroup> groups;
  // Tenants with nothing unfinished: what they begin with, and those that have been served more than that.
  double entry_tokens = 0.0;
  std::vector<AbsentTenant> absent;
  std::int32_t num_tenants = 0;  // with something unfinished
  double turn_scale = 1.0;       // of FairShare
  SeatReservation seats;

  void clear();
  // So many more that wait for a seat, for answers of at most so many tokens.
  void add_holding(std::int32_t num_sequences, std::int32_t max_tokens);
  // How long a seat is kept.
  double mean_hold_ms() const { return num_holding == 0 ? 0.0 : hold_ms / num_holding; }
  // The tenant's, made with `served_tokens` where it is not there yet.
  WaitingGroup& group(std::string_view tenant, std::int32_t priority, double served_tokens);
  // The tenant's account, or what it would begin with.
  double served_tokens(std::string_view tenant) const;
  // Prompts are still to be computed: anybody's, or the tenant's.
  bool has_backlog() const;
  bool has_backlog(std::string_view tenant) const;
};

// The facts that a snapshot is made from.
struct LoadFacts {
  const FairShare& fair_share;
  const StepTimeModel& step_times;
  StepRates rates;
  const OutputLengths& answer_lengths;  // of all tenants
  WaitingPolicy policy = WaitingPolicy::kPriority;
  std::int32_t max_num_seqs = 0;
  std::int32_t num_running = 0;
  double ttft_target_ms = 0.0;  // of class 0; 0: none
  TimePoint now{};
};

// Writes the snapshot anew. `sequences`: all that is unfinished, by id; sorted by group on return.
void describe_load(const LoadFacts& facts, std::span<SequenceFacts> sequences, LoadSnapshot& load);

}  // namespace kvasir::admission
