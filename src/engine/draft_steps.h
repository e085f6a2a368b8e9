// Steps that also run guesses of what their sequences generate next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/active_request.h"
#include "kvasir/engine.h"
#include "sched/scheduler.h"
#include "spec/speculator.h"

namespace kvasir {

// Between scheduler and speculator: what ran, what came of it, and what the next step may guess.
//
// Thread safety: none; on the engine thread.
class DraftSteps {
 public:
  explicit DraftSteps(bool is_on) : is_on_(is_on) {}

  // The step is about to run this.
  void begin_step(const sched::SchedulerOutput& output);
  // The step brought this to one sequence of the request, of which num_sampled tokens were not forced; called in the
  // order of the step.
  void advance(const sched::SequenceUpdate& update, std::int32_t num_sampled, const sched::Scheduler& scheduler,
               ActiveRequest& request);
  // Gives guesses to the sequences that go on. Counts those that ran.
  void end_step(double step_ms, sched::Scheduler& scheduler, EngineStats& stats);
  // The sequence has ended.
  void forget(SequenceId id);

 private:
  void learn(const sched::SequenceUpdate& update, std::int32_t num_guesses, std::int32_t num_accepted,
             const sched::Scheduler& scheduler, const ActiveRequest& request);

  struct Ran {
    SequenceId id{};
    std::int32_t num_guesses = 0;
  };

  bool is_on_;
  spec::Speculator speculator_;
  std::vector<Ran> ran_;
  std::size_t next_ran_ = 0;  // behind the last sequence that advance() was told of
  bool is_plain_decoding_ = false;  // every sequence ran one token of its own, and sampled
  std::int32_t num_guesses_ = 0, num_tokens_ = 0, num_accepted_ = 0;  // of the step
  std::int32_t num_answer_guesses_ = 0, num_answer_accepted_ = 0;     // from answers that had ended
  std::vector<SequenceId> streams_;                                   // that go on generating
  std::vector<GuidedChoice*> guides_;                                 // of each, or null
  std::vector<TokenId> tokens_;                                       // kept for its memory
};

}  // namespace kvasir
