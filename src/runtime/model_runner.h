// Runs one scheduled step on the model: tokens in, sampled tokens and log-probabilities out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "kvasir/request.h"
#include "model/model.h"
#include "runtime/attention_observer.h"
#include "runtime/batch_builder.h"
#include "runtime/embedding_sum.h"
#include "runtime/faster_way.h"
#include "runtime/head_plan.h"
#include "sampling/sampler.h"
#include "sched/scheduler_output.h"

namespace kvasir::runtime {

// The results that one scheduled sequence needs from its logits. Borrowed for the call.
struct SamplingTask {
  const SamplingParams* params = nullptr;
  std::uint64_t seed = 0;
  std::int32_t choice_index = 0;
  sampling::AllowedTokens allowed;           // of the last committed row
  // The same for each guess's row. Empty: `allowed` is theirs too.
  std::span<const sampling::AllowedTokens> allowed_at_guesses = {};
  // The distributions that guesses were drawn from, for residual sampling. Empty: guesses are checked by equality.
  std::span<const sampling::Distribution> guesses_drawn_from = {};
  std::span<const TokenId> stop_tokens;      // end-of-generation and stop tokens, held off until min_tokens
  // The token is a guess, see SampleInput. Null: it is none.
  sampling::Distribution* guess_distribution = nullptr;
  std::span<const std::uint8_t> token_types;  // of the prompt, or empty for type 0
  const LogitsObserver* observer = nullptr;  // null or empty: nobody looks at prompt logits
  bool want_attention_scores = false;
  backend::ScaledAdapter adapter = {};
  EmbeddingSum* embedding = nullptr;  // set: rows that want logits go there as hidden states instead
};

struct SequenceResult {
  std::vector<PositionLogprobs> prompt_logprobs;  // of the prompt tokens whose logits came up in this step
  std::optional<AttentionScores> attention_scores;    // with its last token, when asked for
  std::optional<Error> error;                     // this sequence cannot go on; the others are untouched
};

// The memory of sequences that run layer by layer. All layers take turns in the cells of one.
struct PrefillOnlyMemory {
  std::vector<backend::KvGroupView> kv_groups;  // as BatchBuilder's, of layer blocks
  backend::Rows hidden;                         // [rows that may be kept, hidden_size]
};

// Not thread-safe: one engine thread drives it.
class ModelRunner {
 public:
  // Model, backend and the memory behind `kv_groups` (as BatchBuilder's) and `prefill_only` must outlive the
  // runner.
  ModelRunner(model::Model& model, backend::Backend& backend, std::vector<backend::KvGroupView> kv_groups,
              PrefillOnlyMemory prefill_only, std::int32_t max_logit_rows);

  // One result per scheduled sequence, valid until the next call. Requires: tasks.size() ==
  // output.sequences.size().
  //
  // Guesses are verified as if nobody had guessed: each row is sampled with the history that leads to it, and
  // a guess counts when it is what was sampled. So tokens and log-probabilities do not depend on guesses; where it is
  // known what they were drawn from, the tokens' distribution does not.
  std::span<SequenceResult> run(const sched::SchedulerOutput& output, std::span<const SamplingTask> tasks);
  // The tokens that the last run() sampled, for the scheduler; valid likewise. Those of a sequence with an
  // error are of no use.
  sched::ModelStepResult& sampled() { return sampled_; }

 private:
  // Sequences that run in one forward pass, and what belongs to each.
  struct Part {
    std::span<const sched::ScheduledSequence> sequences;
    std::span<const SamplingTask> tasks;
    std::span<SequenceResult> results;
    std::span<std::int32_t> num_sampled;  // tokens by sequence
  };

  // A row whose logits are wanted.
  struct WantedRow {
    std::size_t sequence = 0;
    std::int32_t position = 0;
    std::int32_t batch_row = 0;
    bool samples = false;
  };

  // One row's logits of tokens, and what the model knows of their maxima.
  struct LogitView {
    std::span<float> logits;
    std::span<const float> tile_maxima;
  };

  void convert_cells(const kv::CellConversions& conversions);
  const backend::BatchInput& build(BatchBuilder& builder, const Part& part);
  void finish(const Part& part);
  void collect_wanted_rows(const Part& part);
  std::size_t end_of_chunk(const Part& part, std::size_t begin) const;
  void read_logits(const Part& part, std::size_t begin, std::size_t end);
  void read_hidden(const Part& part, std::size_t begin, std::size_t end);
  static bool is_observed(const WantedRow& wanted, const Part& part);
  static const sampling::AllowedTokens& allowed_of(const WantedRow& wanted, const Part& part);
  static bool is_behind_end(const WantedRow& wanted, const Part& part);
  static HeadPlan::Reads reads_of(const WantedRow& wanted, const Part& part);
  void plan_head(const Part& part, std::span<const WantedRow> chunk, std::int32_t first_row);
  model::Logits run_head();
  model::Logits search_head();
  LogitView view_of(const model::Logits& logits, std::size_t i, bool is_scaled);
  void read_row(const WantedRow& wanted, const Part& part, const LogitView& row);
  bool is_reached(const WantedRow& wanted, const Part& part) const;
  std::span<const TokenId> generated_before(const WantedRow& wanted,
                                            const sched::ScheduledSequence& sequence);
  void sample(const WantedRow& wanted, const Part& part, const LogitView& row);
  void observe(const Part& part);
  void mark_non_finite(const Part& part);

  model::Model& model_;
  backend::Backend& backend_;
  std::byte* const kv_memory_;
  BatchBuilder builder_;
  BatchBuilder layer_builder_;  // of sequences that run layer by layer
  const backend::Rows hidden_;  // of theirs
  AttentionObserver observer_;
  const std::int32_t max_logit_rows_;
  sampling::SamplerScratch scratch_;
  std::vector<WantedRow> wanted_;
  HeadPlan head_plan_;  // of the rows that are read together
  // By rows that want their greatest logit: all logits are computed, or the greatest is searched for.
  std::array<FasterWay, 4> head_ways_;
  std::vector<std::uint8_t> wants_attention_scores_;  // by sequence of a part
  std::vector<std::span<const std::uint8_t>> token_types_;  // likewise
  std::vector<backend::ScaledAdapter> adapters_;
  std::vector<SequenceResult> results_;
  sched::ModelStepResult sampled_;
  std::vector<TokenId> generated_;          // with accepted guesses, of the sequence that is sampled
  std::vector<std::int32_t> num_accepted_;  // of observe(), kept for its memory
};

}  // namespace kvasir::runtime
