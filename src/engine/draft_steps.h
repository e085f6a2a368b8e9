// Steps that also run guesses of what their sequences generate next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/active_request.h"
#include "engine/draft_model.h"
#include "kvasir/engine.h"
#include "sched/scheduler.h"
#include "spec/speculator.h"

namespace kvasir {

// Between scheduler and speculator: what ran, what came of it, and what the next step may guess.
//
// Thread safety: none; on the engine thread.
class DraftSteps {
 public:
  // `model` outlives this; null: there is none. `heads`: null: there are none.
  DraftSteps(const EngineConfig& config, DraftModel* model, std::shared_ptr<const spec::NgramTable> heads)
      : is_on_(config.speculates),
        model_(model),
        rule_(config.draft_rule),
        speculator_({.max_guesses = config.max_draft_tokens,
                     .uses_text = config.drafts_from_text,
                     .uses_answers = config.drafts_from_answers,
                     .has_model = model != nullptr,
                     .heads = std::move(heads)}) {}

  // The distributions of the sequence's guesses, one after another, when residual sampling is to check them.
  // Valid until end_step().
  std::span<const sampling::Distribution> drawn_from(const sched::ScheduledSequence& sequence) const;

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
  void end(SequenceId id);
  void count_estimates(DraftEstimates& estimates) const;
  void learn(const sched::SequenceUpdate& update, std::int32_t num_guesses, std::int32_t num_accepted,
             const sched::Scheduler& scheduler, const ActiveRequest& request);
  void give(const spec::Speculator::Draft& draft, std::span<const TokenId> guesses, sched::Scheduler& scheduler) const;
  void give_drawn(const spec::Speculator::Draft& draft, std::span<const TokenId> guesses, sched::Scheduler& scheduler) const;
  void ask_model(sched::Scheduler& scheduler);
  void ask(const spec::Speculator::Draft& draft, const sched::Scheduler& scheduler, DraftModel::Asked& asked) const;
  bool is_residual(const ActiveRequest& request) const;

  struct Ran {
    SequenceId id{};
    std::int32_t num_guesses = 0;
  };

  bool is_on_;
  DraftModel* model_;
  DraftRule rule_;
  spec::Speculator speculator_;
  std::vector<Ran> ran_;
  std::size_t next_ran_ = 0;  // behind the last sequence that advance() was told of
  bool is_plain_decoding_ = false;  // every sequence ran one token of its own, and sampled
  std::int32_t num_guesses_ = 0, num_tokens_ = 0, num_accepted_ = 0;  // of the step
  double num_expected_ = 0.0;  // of those accepted, before the step
  static_assert(kDrafters.size() == spec::Speculator::kNumSources);
  std::array<DraftCounts, kDrafters.size()> drafts_by_{};  // of the step, in the order of Speculator::Source
  std::vector<spec::Speculator::Draft> model_drafts_;  // that the model is to make
  std::vector<DraftModel::Asked> asked_;               // of them, in their order; longer, kept for its memory
  std::size_t num_asked_ = 0;                          // for the guesses of the next step
  double draft_ms_ = 0.0;                              // that the model took for the guesses of the next step
  std::vector<SequenceId> streams_;                                   // that go on generating
  std::vector<GuidedChoice*> guides_;                                 // of each, or null
  std::vector<const ActiveRequest*> requests_;                        // of each
  std::vector<TokenId> tokens_;                                       // kept for its memory
};

}  // namespace kvasir
