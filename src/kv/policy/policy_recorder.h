// Gathers what policies do to cells while it happens, and tells a journal.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/blocks/layer_group.h"
#include "kv/cells/cell_store.h"
#include "kv/policy/journal.h"
#include "kv/sequence_kv.h"

namespace kvasir::kv {

// Every call returns at once when there is no journal. A step's record goes out when the demotions of all
// sequences are over: until then others may agree to what the step wished for.
//
// Thread safety: none; the engine thread is the only caller.
class PolicyRecorder {
 public:
  // All are borrowed; `journal` may be null.
  PolicyRecorder(PolicyJournal* journal, std::span<const LayerGroup> groups, const CellStore& cells)
      : journal_(journal), groups_(groups), cells_(cells) {}

  // The policy of `kv` is about to be asked. Actions added until end_step() belong to that step.
  void begin_step(SequenceKv& kv, std::int32_t num_computed_tokens);
  void add(const SequenceKv& kv, std::int32_t group, const CellAction& action, KvFormat from);
  void add_waiting();
  void ran_out_of_room();
  void end_step(const SequenceKv& kv, double bytes_share_before, double bytes_share_after);

  // A wish of a shared block's holder has come true. Outside of begin_step() and end_step().
  void add_shared(const SequenceKv& kv, std::int32_t group, CellAction wish, KvFormat from, KvFormat to);
  // Tells the journal of all steps since the last call.
  void hand_over();

  // The sequence is about to give its KV back; takes its scores along.
  void end_sequence(SequenceKv& kv);

 private:
  StepRecord& step_of(const SequenceKv& kv);
  void count_cells(const SequenceKv& kv, StepRecord& step) const;

  PolicyJournal* const journal_;
  const std::span<const LayerGroup> groups_;
  const CellStore& cells_;
  std::int64_t num_holds_ = 0;
  double began_ms_ = 0.0;  // the step that has not ended
  std::vector<StepRecord> steps_;
};

}  // namespace kvasir::kv
