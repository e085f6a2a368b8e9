// Stands in for the model: a KV memory behind block ids, and the toy model of solo_run.h reading through
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/scheduler_output.h"
#include "sim/cell_memory.h"
#include "sim/solo_run.h"
#include "sim/workload.h"

namespace kvasir::sim {

class FakeEngine {
 public:
  struct Outcome {
    std::vector<TokenId> next_tokens = {};  // none where it does not sample
    std::string fault = {};                 // empty: everything read was right
  };

  FakeEngine(const kv::KvCacheManager& kv, std::int32_t vocab_size, std::int32_t max_prefill_only_tokens);

  // Before the sequences of a step: cells become coarser. Empty, or what was wrong.
  std::string convert(const kv::CellConversions& conversions);

  // Runs some layers of the tokens of prefill-only sequences that have a pass in common: writes their KV,
  // reads what they attend to and their hidden states, and compares both with what the layers before and the
  // same layer should have left. Empty, or what was wrong.
  std::string run_layers(std::span<const sched::ScheduledSequence> scheduled, const sched::LayerPass& pass);

  // Runs one sequence's tokens: writes their KV, reads what they attend to through the block tables, and
  // compares each slot with the solo run. Where logits are wanted, the state must equal the solo run's.
  // Guesses are run and stored like any token; those that are not what was sampled end the walk.
  Outcome run(const sched::ScheduledSequence& scheduled, const SoloRun& solo, const NamespaceHash& hash,
              std::uint64_t sample_seed);

 private:
  // A prefill-only sequence's data of a token: its KV in a layer, its hidden state after one.
  struct LayerSlot {
    SequenceId writer{-1};
    std::int32_t position = -1;
    std::int32_t layer = -1;
    friend bool operator==(const LayerSlot&, const LayerSlot&) = default;
  };

  std::string run_layer(const sched::ScheduledSequence& scheduled, std::int32_t layer, std::int32_t row);

  // The last writer of a slot, for a message that helps, and its contents.
  struct Slot {
    std::uint64_t kv = 0;
    TokenId token = kNoToken;
    std::int32_t position = -1;
    SequenceId writer{-1};
  };

  // Runs a row: its state, or what was wrong.
  std::string run_row(const sched::ScheduledSequence& scheduled, std::int32_t row, const SoloRun& solo,
                      const NamespaceHash& hash, std::uint64_t& state);
  std::string spoil_row(const sched::ScheduledSequence& scheduled, std::int32_t row);
  std::optional<std::string> attend(const sched::ScheduledSequence& scheduled, std::int32_t group,
                                    std::int32_t position, const SoloRun& solo, std::uint64_t& state) const;
  std::optional<std::string> check_cells(const sched::ScheduledSequence& scheduled, std::int32_t group) const;
  void look_at_attention(const sched::ScheduledSequence& scheduled, std::int32_t num_tokens,
                         std::uint64_t seed) const;
  std::optional<std::string> store(const sched::ScheduledSequence& scheduled, std::int32_t group,
                                   std::int32_t position, TokenId token, std::uint64_t state);

  const kv::KvCacheManager& kv_;
  const std::int32_t vocab_size_;
  std::vector<std::vector<Slot>> memory_;  // [group][block * 16 + slot]
  std::vector<LayerSlot> layer_memory_;    // [layer block * 16 + slot]
  std::vector<LayerSlot> hidden_;          // [row]
  CellMemory cells_;
};

}  // namespace kvasir::sim
