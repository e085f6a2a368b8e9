// When a request that comes now would start, so that it can be refused at once instead of too late.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/pace.h"
#include "sched/waiting_order.h"

namespace kvasir::sched {

// Sequences of one tenant and class: those that wait, and the prompts of those that run.
struct WaitingGroup {
  std::string tenant;
  std::int32_t priority = 0;
  double served_tokens = 0.0;    // of the tenant, see TenantLedger
  std::int32_t num_running = 0;  // of the tenant
  double recent_share = 0.0;     // of what all tenants were given lately, what this one was
  std::int32_t num_sequences = 0;
  PromptWork prompts;          // of those that wait, without what is expected to be cached
  PromptWork running_prompts;  // what is still to be computed of those that run
  // Of both, those of prefill-only sequences, which keep to themselves (prefill_only_batch.h).
  PromptWork prefill_only, running_prefill_only;
  // And each of those that shorter ones need not wait for (scheduler.h).
  std::vector<PromptWork> long_ones, running_long;
};

struct AbsentTenant {
  std::string tenant;
  double served_tokens = 0.0;
};

// What runs and waits between two steps: plain data for other threads.
struct LoadSnapshot {
  std::vector<double> busy_seats_ms;  // of those that run: until each is expected to end
  std::int32_t num_free_seats = 0;
  // How long all of them and those that wait are expected to keep theirs, and how many that are.
  double hold_ms = 0.0;
  std::int32_t num_holding = 0;
  Pace pace;  // beside the streams that run; all 0: nothing is known yet
  // Of those that nothing is known of yet: the length of their answers, and what each token of them takes
  // when no seat is free.
  std::int32_t usual_answer_tokens = 0;
  double full_step_ms = 0.0;
  double typical_prompt_ms = 0.0;  // of 512 tokens, with nothing beside it
  std::vector<WaitingGroup> groups;
  // Of tenants with nothing unfinished: what they begin with, and which have been served more than that.
  double entry_tokens = 0.0;
  std::vector<AbsentTenant> absent;
  std::int32_t num_tenants = 0;  // with something unfinished
  // Of the free seats, those for tenants that have less than seat_share; 0 where there is one tenant.
  std::int32_t num_reserved_seats = 0;
  std::int32_t seat_share = 0;

  void clear();
  // So many more that wait for a seat, for answers of at most so many tokens.
  void add_holding(std::int32_t num_sequences, std::int32_t max_tokens);
  // How long a seat is kept.
  double mean_hold_ms() const { return num_holding == 0 ? 0.0 : hold_ms / num_holding; }
  // The tenant's, made with `served_tokens` where it is not there yet.
  WaitingGroup& group(std::string_view tenant, std::int32_t priority, double served_tokens);
  // The tenant's account, or what it would begin with.
  double served_tokens(std::string_view tenant) const;
  // Prompts are still to be computed.
  bool has_backlog() const;
};

struct StartForecast {
  double wait_ms = 0.0;     // until its prompt would be computed
  double prefill_ms = 0.0;  // and then
  double typical_ms = 0.0;  // what a prompt of 512 tokens takes on an idle machine
};

// For a request of this tenant and class with so much of its prompt to compute. One that is prefill-only
// waits for the others like it too; one that is not has half of the steps beside them.
StartForecast forecast_start(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant,
                             std::int32_t priority, const PromptWork& prompt, bool is_prefill_only = false);

// Whether somebody who is there has been served more than this tenant, by more than a turn.
bool is_owed(const LoadSnapshot& load, const WaitingConfig& config, std::string_view tenant);

// The time to the first token that a class is promised, from that of class 0: thirty times as long for those
// behind it. 0: none.
double target_ms_of(double ttft_target_ms, std::int32_t priority);

// For a prompt that takes so long by itself: a quarter more than that, where the target is less.
double reachable_target_ms(double target_ms, double prefill_ms);

// Whether a prompt is so long that, by value, those for which there is this target shall not wait for what is
// left of it.
bool gives_way(const Pace& pace, const PromptWork& prompt, double target_ms);

// By how much the first token is later than it may be, at most 0 when it is not. It may take so many targets
// (patience.h), or two typical prompts for each where that is more, so that a slow machine is not measured
// by a fast one's target; and a quarter longer than the prompt takes by itself where that is more, so that an
// idle server refuses nobody. With more patience for long prompts they take the time of those that could have
// kept the target (bench/schedule with Azure's conversations: a third of the goodput at four times the
// capacity).
double excess_ms(const StartForecast& forecast, double target_ms, double patience_targets);

}  // namespace kvasir::sched
