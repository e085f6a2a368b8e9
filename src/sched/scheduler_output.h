// What one step runs, and what came of it: plain data between the scheduler and the runtime.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/block_table.h"
#include "kv/bytes_use.h"
#include "kv/cell_conversions.h"
#include "kv/sequence_scores.h"
#include "kvasir/ids.h"
#include "kvasir/request.h"

namespace kvasir::sched {

// Passed in by the caller: this layer has no clock of its own.
using TimePoint = std::chrono::steady_clock::time_point;

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
  std::span<const TokenId> history;  // all its tokens so far: prompt, then generated
  std::int32_t num_prompt_tokens = 0;
  std::int32_t first_position = 0;  // absolute position of the first token to run
  std::int32_t num_tokens = 0;
  std::int32_t first_logits_row = 0;  // rows [first_logits_row, num_tokens) want logits
  bool samples = false;               // the last row's logits choose the next token
  // Per layer group; cover every position to read and to write. Of a prefill-only sequence: of layer blocks.
  std::span<const kv::BlockTable> block_tables;
  // Per layer group, where its policy wants to know what the step attended to: the runtime writes it here.
  std::span<kv::SequenceScores> scores;

  // Row r is the token at absolute position first_position + r.
  std::span<const TokenId> token_ids() const {
    return history.subspan(static_cast<std::size_t>(first_position), static_cast<std::size_t>(num_tokens));
  }
  std::int32_t num_logits_rows() const { return num_tokens - first_logits_row; }
};

// Of prefill-only sequences: which layers their tokens run this step.
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
  std::int32_t num_tokens = 0;      // that run all layers
  std::vector<SequenceId> expired;  // dropped from the queue: their start deadline passed
  // Cells to write anew first of all.
  const kv::CellConversions* conversions = nullptr;  // never null once scheduled

  bool empty() const { return sequences.empty(); }
};

// The runtime's answer to a SchedulerOutput.
struct ModelStepResult {
  std::vector<TokenId> next_tokens;  // one per scheduled sequence; kNoToken where it does not sample
};

// What a step meant for one sequence; sequences that are still computing their prompt have none.
struct SequenceUpdate {
  SequenceId id{};
  TokenId token = kNoToken;                   // the new token; none when the request wants only its prompt
  std::optional<FinishReason> finish_reason;  // its last update; the sequence is gone
  std::int32_t num_cached_tokens = 0;         // of its prompt, not computed but found
  kv::BytesUse kv_bytes;                      // so far
  SequenceTimes times;
  std::int32_t num_preemptions = 0;  // so far
};

}  // namespace kvasir::sched
