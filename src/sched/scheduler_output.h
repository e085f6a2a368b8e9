// One step's work and its results: plain data between the scheduler and the runtime.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "admission/time_point.h"
#include "kv/blocks/block_table.h"
#include "kv/cells/cell_conversions.h"
#include "kv/cells/sequence_scores.h"
#include "kv/policy/bytes_use.h"
#include "kvasir/ids.h"
#include "kvasir/request.h"

namespace kvasir::sched {

using admission::TimePoint;

// Milestones of a sequence, for latency metrics.
struct SequenceTimes {
  TimePoint arrived{};
  std::optional<TimePoint> started;          // first left the queue
  std::optional<TimePoint> prompt_computed;  // the step that computed its last prompt token was over
};

// Consecutive tokens of one sequence to run this step. All spans borrow from the sequence: valid until the
// scheduler's next update(), or until this sequence is finished.
struct ScheduledSequence {
  SequenceId id{};
  std::span<const TokenId> history;  // all its committed tokens so far: prompt, then generated
  // Guesses of the tokens behind them; only of a sequence that is_decoding(). Row num_committed_tokens() + i
  // runs guess i, and its result counts when all rows before it sampled the guesses.
  std::span<const TokenId> draft_token_ids;
  std::int32_t num_prompt_tokens = 0;
  std::int32_t first_position = 0;    // absolute position of the first token to run
  std::int32_t num_tokens = 0;        // rows: committed tokens, then guesses
  std::int32_t first_logits_row = 0;  // rows [first_logits_row, num_tokens) want logits
  bool samples = false;               // the last committed row and every guess choose the token behind them
  // Per layer group; cover every position to read and to write. For a prefill-only sequence: of layer blocks.
  std::span<const kv::BlockTable> block_tables;
  // Per layer group, where its policy wants to know what the step attended to: the runtime writes it here.
  std::span<kv::SequenceScores> scores;

  // Row r is the token at absolute position first_position + r.
  std::span<const TokenId> committed_token_ids() const {
    return history.subspan(static_cast<std::size_t>(first_position),
                           static_cast<std::size_t>(num_committed_tokens()));
  }
  std::int32_t num_draft_tokens() const { return static_cast<std::int32_t>(draft_token_ids.size()); }
  std::int32_t num_committed_tokens() const { return num_tokens - num_draft_tokens(); }
  std::int32_t num_logits_rows() const { return num_tokens - first_logits_row; }
  // One committed token is run, as in every step of a sequence that generates.
  bool is_decoding() const { return num_committed_tokens() == 1; }
};

// For prefill-only sequences: the layers that their tokens run this step.
struct LayerPass {
  std::int32_t first_layer = 0;
  std::int32_t end_layer = 0;
  // Where the hidden states of their rows lie, one after another, among those that the runtime keeps.
  std::int32_t first_hidden_row = 0;
};

struct SchedulerOutput {
  // The first num_whole run all layers; those behind are prefill-only and run `layer_pass`.
  std::vector<ScheduledSequence> sequences;
  std::size_t num_whole = 0;
  LayerPass layer_pass;
  std::int32_t num_tokens = 0;      // rows that run all layers
  std::vector<SequenceId> expired;  // dropped from the queue: their start deadline passed
  // Cells to write anew first of all.
  const kv::CellConversions* conversions = nullptr;  // never null once scheduled

  bool empty() const { return sequences.empty(); }
};

struct SampledToken {
  TokenId token = kNoToken;
  std::optional<PositionLogprobs> logprobs = {};  // when asked for
};

// The answer to a SchedulerOutput.
struct ModelStepResult {
  std::vector<SampledToken> tokens;      // of all scheduled sequences, one after another: sampled ones, then forced ones
  std::vector<std::int32_t> num_tokens;  // per scheduled sequence: 0 where it does not sample, 1 + accepted
  // Per scheduled sequence, or empty for none: tokens behind them that had no alternative, so that no model was asked.
  // Their KV is computed with the next step's. Requires: 0 where it does not sample.
  std::vector<std::int32_t> num_forced;

  void clear() {
    tokens.clear();
    num_tokens.clear();
    num_forced.clear();
  }
  std::int32_t num_forced_of(std::size_t sequence) const { return num_forced.empty() ? 0 : num_forced[sequence]; }
  // The next scheduled sequence's token; kNoToken where it does not sample.
  void add(TokenId token) {
    if (token != kNoToken) tokens.push_back({.token = token});
    num_tokens.push_back(token != kNoToken ? 1 : 0);
  }
};

// A step's result for one sequence; sequences that are still computing their prompt have none.
struct SequenceUpdate {
  SequenceId id{};
  // The new tokens, up to the one that ends the sequence; none when the request wants only its prompt.
  // Borrowed from the ModelStepResult, whose owner may move the log-probabilities out.
  std::span<SampledToken> tokens;
  std::optional<FinishReason> finish_reason;  // its last update; the sequence is gone
  std::int32_t num_cached_tokens = 0;         // of its prompt, not computed but found
  kv::BytesUse kv_bytes;                      // so far
  KvUsage kv_usage;                               // with a policy that is lossy
  SequenceTimes times;
  std::int32_t num_preemptions = 0;  // so far
};

}  // namespace kvasir::sched
