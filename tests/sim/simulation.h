// Drives the real scheduler and cache manager through one workload and checks every promise at every step.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_cache_manager.h"
#include "kv/testing/recording_journal.h"
#include "sched/scheduler.h"
#include "sim/fake_draft_source.h"
#include "sim/fake_engine.h"
#include "sim/seeded_random.h"
#include "sim/solo_run.h"
#include "sim/workload.h"

namespace kvasir::sim {

inline std::int64_t number(SequenceId id) { return static_cast<std::int64_t>(id); }

// Events that the simulation exercised, so that a green run proves it was not idle.
struct Coverage {
  std::int64_t num_steps = 0;
  std::int64_t num_sequences = 0;
  std::int64_t num_finished = 0;
  std::int64_t num_cancelled = 0;
  std::int64_t num_expired = 0;
  std::int64_t num_refused = 0;
  std::int64_t num_preemptions = 0;
  std::int64_t num_skips = 0;  // steps that left out streams for a tenant that was owed
  std::int64_t num_hit_tokens = 0;
  std::int64_t num_evictions = 0;
  std::int64_t num_deduplicated = 0;
  std::int64_t num_borrowed_tokens = 0;  // taken by sequences with a policy from those without
  std::int64_t num_block_copies = 0;     // that they made of them
  std::int64_t num_conversions = 0;  // of cells to coarser formats
  std::int64_t num_rounds = 0;       // of them that had to wait for others
  std::int64_t num_moves = 0;        // of cells to other pages
  std::int64_t num_journaled = 0;    // cells whose change a journal was told of
  std::int64_t num_budgets = 0;      // times that a budget was looked at
  std::int64_t num_layer_passes = 0;
  std::int64_t num_holds = 0;
  std::int64_t num_freezes = 0;
  std::int64_t num_draft_tokens = 0;     // guesses that ran
  std::int64_t num_accepted_tokens = 0;  // of them
  std::int64_t num_forced_tokens = 0;

  void add(const Coverage& other);
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool verbose);

  // Empty, or the first promise that was broken.
  std::string run();
  const Coverage& coverage() const { return coverage_; }

 private:
  enum class End : std::uint8_t { kNone, kItself, kCancelled, kExpired };

  struct Choice {
    const SimRequest* request = nullptr;
    std::int32_t index = 0;
    SoloRun solo;
    std::vector<TokenId> generated = {};
    std::int32_t num_prompt_logits = 0;
    bool started = false;
    End end = End::kNone;
  };

  void step();
  void submit_arrivals();
  void disturb(Moment moment);
  void check_order_of_starts();
  void check_prompt_is_computed_once(const sched::Sequence& starting);
  sched::ModelStepResult run_model(const sched::SchedulerOutput& output);
  void hold_and_release();
  void freeze_some();
  void propose_drafts();
  std::int32_t force_tokens(const Choice& choice, std::vector<TokenId>& next_tokens);
  void check_drafts_left_nothing();
  void check_limits(const sched::SchedulerOutput& output);
  void check_layer_pass(const sched::SchedulerOutput& output);
  void check_prompt_logits(const sched::ScheduledSequence& scheduled, Choice& choice);
  void take_updates(std::span<const sched::SequenceUpdate> updates);
  void check_blocks();
  std::vector<std::int32_t> count_holders(std::int32_t group);
  void check_heads_outlive_tails();
  void check_cells();
  void check_borrowed(const sched::Sequence& sequence);
  void check_journal();
  void check_record(const kv::StepRecord& step, const sched::Sequence& sequence);
  void check_budget(const kv::StepRecord& step, const sched::Sequence& sequence);
  void check_all_ended();
  void end(SequenceId id, End how);
  void fail(std::string message);
  template <class... Args>
  void log(fmt::format_string<Args...> format, Args&&... args) const {
    if (verbose_) fmt::print("step {:3}: {}\n", step_, fmt::format(format, std::forward<Args>(args)...));
  }

  const Workload workload_;
  const bool verbose_;
  SeededRandom random_;
  kv::RecordingJournal journal_;
  kv::KvCacheManager kv_;
  sched::Scheduler scheduler_;
  FakeEngine engine_;
  FakeDraftSource draft_source_;
  SeededRandom of_holds_;
  const bool holds_;                               // some sequences for some steps
  SeededRandom of_runs_;
  const std::int32_t percent_forced_;  // of steps that sample, with tokens that are forced behind
  SeededRandom of_freezes_;
  const std::int32_t percent_frozen_;  // of sequences with a lossy policy, in a step
  std::map<SequenceId, std::int32_t> held_until_;  // step
  std::map<SequenceId, Choice> choices_;
  std::vector<SequenceId> first_id_;  // per request of the workload; -1: refused or not yet submitted
  std::size_t num_submitted_ = 0;
  std::int32_t step_ = 0;
  std::int64_t num_conversions_ = 0;
  std::int64_t num_rounds_ = 0;
  std::int64_t num_moves_ = 0;
  std::int64_t num_layer_passes_ = 0;
  std::int64_t max_steps_ = 0;  // a bound that only starvation exceeds
  std::string failure_;
  Coverage coverage_;
};

}  // namespace kvasir::sim
