// What the simulation checks at every step.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kv/policy/registry.h"
#include "sim/simulation.h"

namespace kvasir::sim {

// Requests start as they came, or by class and arrival where classes do not age: none overtakes. Only two
// kinds may be passed over: choices of a request that already runs, and, beside prefill-only sequences, those
// that wait for a step's tokens or for a batch.
void Simulation::check_order_of_starts() {
  const admission::WaitingConfig& waiting = workload_.scheduler.waiting;
  const bool is_fifo = waiting.policy == WaitingPolicy::kFifo;
  const bool is_by_class = waiting.policy == WaitingPolicy::kPriority && waiting.ageing_ms == 0.0;
  const auto comes_before = [&](const sched::Sequence& a, const sched::Sequence& b) {
    return is_fifo ? a.id < b.id : is_by_class && sched::RunsBefore{}(&a, &b);
  };
  for (const auto& [id, sequence] : scheduler_.sequences()) {
    Choice& choice = choices_.at(id);
    if (sequence.status != sched::SequenceStatus::kRunning || choice.started) continue;
    choice.started = true;
    check_prompt_is_computed_once(sequence);
    for (const auto& [other_id, other] : scheduler_.sequences()) {
      if (other.status == sched::SequenceStatus::kRunning || !comes_before(other, sequence)) continue;
      if (sequence.is_prefill_only || other.is_prefill_only || other.is_held) continue;
      const bool has_running_sibling = std::ranges::any_of(scheduler_.sequences(), [&](const auto& entry) {
        return entry.second.request_id == other.request_id &&
               entry.second.status == sched::SequenceStatus::kRunning;
      });
      if (!has_running_sibling) fail(fmt::format("sequence {} overtook {}", number(id), number(other_id)));
    }
  }
}

// A choice may start beside others of its request only when one of them holds the prompt.
void Simulation::check_prompt_is_computed_once(const sched::Sequence& starting) {
  std::int32_t num_computing = 0;
  for (const auto& [id, other] : scheduler_.sequences()) {
    if (other.request_id != starting.request_id || other.status != sched::SequenceStatus::kRunning) continue;
    if (other.has_computed_prompt()) return;
    ++num_computing;
  }
  if (num_computing > 1)
    fail(fmt::format("sequence {} computes its sibling's prompt again", number(starting.id)));
}

void Simulation::check_limits(const sched::SchedulerOutput& output) {
  const sched::SchedulerConfig& limits = workload_.scheduler;
  std::int32_t num_tokens = 0;
  for (std::size_t i = 0; i < output.sequences.size(); ++i) {
    const sched::ScheduledSequence& scheduled = output.sequences[i];
    if (i < output.num_whole) num_tokens += scheduled.num_tokens;
    if (scheduled.num_tokens < 1) fail("a sequence was scheduled without tokens");
    if (i < output.num_whole && held_until_.contains(scheduled.id)) fail("a held sequence runs");
    if (limits.max_chunk_tokens > 0 && scheduled.num_tokens > limits.max_chunk_tokens)
      fail("a chunk is too long");
    if (scheduled.first_position + scheduled.num_committed_tokens() > std::ssize(scheduled.history))
      fail("tokens out of range");
    if (scheduled.num_draft_tokens() > 0 && !scheduled.is_decoding()) fail("guesses behind a prompt's chunk");
  }
  if (num_tokens != output.num_tokens || num_tokens > limits.max_num_batched_tokens)
    fail("token budget exceeded");
  if (scheduler_.stats().num_running > limits.max_num_seqs) fail("too many sequences run");
  check_layer_pass(output);
}

void Simulation::check_layer_pass(const sched::SchedulerOutput& output) {
  const sched::SchedulerConfig& limits = workload_.scheduler;
  const auto num_prefill_only = std::ranges::count_if(scheduler_.sequences(), [](const auto& entry) {
    return entry.second.is_prefill_only && entry.second.status == sched::SequenceStatus::kRunning;
  });
  if ((num_prefill_only > 0) != (output.num_whole < output.sequences.size()))
    fail("a prefill-only batch has no pass, or a pass has no batch");
  if (num_prefill_only == 0) return;
  ++num_layer_passes_;
  std::int32_t num_tokens = 0;
  for (std::size_t i = output.num_whole; i < output.sequences.size(); ++i)
    num_tokens += output.sequences[i].num_tokens;
  const std::int32_t chunk = limits.max_chunk_tokens > 0
                                 ? std::min(limits.max_chunk_tokens, limits.max_num_batched_tokens)
                                 : limits.max_num_batched_tokens;
  const auto& [first, end, row] = output.layer_pass;
  if (num_tokens > chunk || (end - first > 1 && num_tokens * (end - first) > chunk))
    fail("a pass is too long");
  if (first >= end || end > limits.prefill_only.num_layers) fail("a pass of layers that there are not");
}

// A running sequence holds the blocks of its computed tokens, no more, and remembers attention to no block
// behind.
void Simulation::check_drafts_left_nothing() {
  for (const auto& [id, sequence] : scheduler_.sequences()) {
    if (sequence.status != sched::SequenceStatus::kRunning || sequence.is_prefill_only) continue;
    const std::int32_t num_blocks = kv::blocks_for(sequence.num_computed_tokens);
    for (const kv::BlockTable& table : sequence.kv.tables) {
      if (table.size() != num_blocks) fail(fmt::format("sequence {} keeps blocks of guesses", number(id)));
    }
    for (const kv::SequenceScores& scores : sequence.kv.scores) {
      if (scores.num_cells() > 0 && scores.num_blocks() > num_blocks)
        fail(fmt::format("sequence {} remembers what a rejected guess attended to", number(id)));
    }
  }
}

// Every prompt position's logits are handed out once, in order.
void Simulation::check_prompt_logits(const sched::ScheduledSequence& scheduled, Choice& choice) {
  const bool wanted = choice.request->request.want_prompt_logits && choice.index == 0;
  const std::int32_t first = scheduled.first_position + scheduled.first_logits_row;
  const std::int32_t end = scheduled.first_position + scheduled.num_tokens;
  if (!wanted || choice.num_prompt_logits == scheduled.num_prompt_tokens) {
    if (scheduled.num_logits_rows() != (scheduled.samples ? 1 + scheduled.num_draft_tokens() : 0))
      fail("logits that nobody wants");
    return;
  }
  if (first < end && first != choice.num_prompt_logits) fail("prompt logits skip or repeat a position");
  choice.num_prompt_logits = std::max(choice.num_prompt_logits, std::min(end, scheduled.num_prompt_tokens));
}

// Each block is free xor referenced, and its count equals its holders.
void Simulation::check_blocks() {
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    const kv::BlockPool& pool = kv_.pool(g);
    const std::vector<std::int32_t> num_holders = count_holders(g);
    std::vector<std::int32_t> times_free(num_holders.size(), 0);
    for (const BlockId block : pool.free_list()) ++times_free[static_cast<std::size_t>(index_of(block))];
    for (std::int32_t i = 0; i < pool.num_blocks(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (times_free[at] != (num_holders[at] == 0 ? 1 : 0) || pool.ref_count(BlockId{i}) != num_holders[at]) {
        fail(fmt::format("group {}: block {} has {} holders, count {}, and is {} times free", g, i,
                         num_holders[at], pool.ref_count(BlockId{i}), times_free[at]));
      }
    }
  }
  check_heads_outlive_tails();
  check_cells();
}

// A sequence's policy leaves alone what it has borrowed. All of that is cached as it was computed, and no other
// sequence with a policy may find it as its own.
void Simulation::check_borrowed(const sched::Sequence& sequence) {
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    for (const std::int32_t i : sequence.kv.borrowed_blocks(g)) {
      const BlockId block = sequence.kv.table(g)[i];
      const bool is_exact = kv_.cells().bytes(g, block) == kv_.cells().new_block_bytes(g);
      if (!is_exact || kv_.pool(g).contents(block) == kv::kNoPrefixNode)
        fail(fmt::format("sequence {} changed a block that it borrowed", number(sequence.id)));
    }
  }
}

// Sequences that asked for exact KV have it; a shared block is as one of its holders' policies may have made
// it; the memory in use is that of the blocks that have KV.
void Simulation::check_cells() {
  for (const auto& [id, sequence] : scheduler_.sequences()) {
    if (sequence.status != sched::SequenceStatus::kRunning) continue;
    check_borrowed(sequence);
    if (sequence.kv_policy.is_lossy() || sequence.is_prefill_only) continue;  // the latter takes what it needs of a block
    for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
      for (const BlockId block : sequence.kv.tables[static_cast<std::size_t>(g)].blocks()) {
        if (block != kHole && kv_.cells().bytes(g, block) != kv_.cells().new_block_bytes(g)) {
          fail(fmt::format("sequence {} asked for exact KV and reads a coarse block", number(id)));
        }
      }
    }
  }
  std::int64_t used_bytes = 0, held_bytes = 0;
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    for (std::int32_t i = 0; i < kv_.pool(g).num_blocks(); ++i) {
      const bool has_kv = kv_.pool(g).ref_count(BlockId{i}) > 0 ||
                          kv_.pool(g).contents(BlockId{i}) != kv::kNoPrefixNode;
      const std::int64_t bytes = kv_.cells().bytes(g, BlockId{i});
      if (!has_kv && bytes > 0) fail(fmt::format("group {}: block {} keeps memory without KV", g, i));
      used_bytes += bytes;
      held_bytes += kv_.pool(g).ref_count(BlockId{i}) > 0 ? bytes : 0;
    }
  }
  if (used_bytes != kv_.cells().arena().used_bytes()) fail("memory is lost, or used twice");
  if (held_bytes != kv_.held_bytes()) fail("what sequences hold is counted wrongly");
}

// The journal's records of this step agree with the cells, for each sequence that holds them.
void Simulation::check_journal() {
  for (const kv::StepRecord& step : journal_.steps) {
    const auto holder = std::ranges::find_if(
        scheduler_.sequences(), [&](const auto& entry) { return entry.second.kv.hold == step.hold; });
    const bool has_ended = std::ranges::find(journal_.ends, step.hold, &kv::SequenceEnd::hold) != journal_.ends.end();
    if (has_ended) continue;  // it found a prefix, and no room for more
    if (holder == scheduler_.sequences().end()) {
      fail("a journal is told of a sequence that holds nothing");
    } else {
      check_record(step, holder->second);
    }
  }
  journal_.steps.clear();
}

void Simulation::check_record(const kv::StepRecord& step, const sched::Sequence& sequence) {
  if (step.num_computed_tokens != sequence.num_computed_tokens) fail("a journal is told of another time");
  if (sequence.kv.is_frozen) fail("a policy acts that was frozen");
  coverage_.num_journaled += std::ssize(step.actions);
  check_budget(step, sequence);
  for (const kv::ActionRecord& action : step.actions) {
    const kv::BlockTable& table = sequence.kv.tables[action.group];
    const auto present = kv_.cells().at(action.group, table[action.block], action.cell).format();
    if (present != action.to || !kv::is_coarser(action.to, action.from)) {
      fail(fmt::format("a journal is told that sequence {} has a cell in {} that is in {}",
                       number(sequence.id), name_of(action.to), name_of(present)));
    }
  }
}

// Where one price is for a whole group, its budget is kept, or all that may go is gone.
void Simulation::check_budget(const kv::StepRecord& step, const sched::Sequence& sequence) {
  const kv::KvPolicySettings& settings = sequence.kv_policy;
  const bool has_one_price = settings.policy == &kv::pooled_ladder_policy() ||
                             settings.policy == &kv::priced_ladder_policy();
  if (!has_one_price || settings.max_lost_share < 1.0 || !step.is_planned || step.ran_out_of_room ||
      step.num_waiting > 0) {
    return;
  }
  ++coverage_.num_budgets;
  if (step.bytes_share_after <= settings.budget_share) return;
  bool has_full_group = false;  // only those have a budget
  const std::int32_t end = step.num_computed_tokens / kv::kTokensPerBlock - kv::kNumGraceBlocks;
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    if (!kv_.group(g).is_full()) continue;
    has_full_group = true;
    bool may_drop = false;
    for (std::int32_t b = kv::kNumSinkBlocks; b < end; ++b) {
      const BlockId block = sequence.kv.tables[static_cast<std::size_t>(g)][b];
      may_drop = may_drop || (block != kHole && kv_.cells().bytes(g, block) > 0);
    }
    if (!may_drop) return;
  }
  if (!has_full_group) return;
  fail(fmt::format("sequence {} keeps {:.1f}% of its bytes instead of {:.1f}%, and blocks that may go",
                   number(sequence.id), 100 * step.bytes_share_after, 100 * settings.budget_share));
}

std::vector<std::int32_t> Simulation::count_holders(std::int32_t group) {
  std::vector<std::int32_t> num_holders(static_cast<std::size_t>(kv_.pool(group).num_blocks()), 0);
  for (const auto& [id, sequence] : scheduler_.sequences()) {
    const bool holds_kv = !sequence.kv.tables.empty() || sequence.num_computed_tokens > 0;
    if (holds_kv != (sequence.status == sched::SequenceStatus::kRunning)) {
      fail(fmt::format("sequence {} waits with KV or runs without", number(id)));
    }
    if (!holds_kv) continue;
    const kv::BlockTable& table = sequence.kv.tables[static_cast<std::size_t>(group)];
    if (!sequence.is_prefill_only &&
        table.first_held() < kv_.group(group).first_needed_block(sequence.num_computed_tokens)) {
      fail(fmt::format("sequence {} keeps blocks that left its window", number(id)));
    }
    for (const BlockId block : table.blocks()) {
      if (block != kHole) ++num_holders[static_cast<std::size_t>(index_of(block))];
    }
  }
  return num_holders;
}

// In a full group a cached block without the one before it can never be hit again: blocks must go tail first.
void Simulation::check_heads_outlive_tails() {
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    if (!kv_.group(g).is_full()) continue;
    for (std::int32_t i = 0; i < kv_.pool(g).num_blocks(); ++i) {
      const kv::PrefixNodeId node = kv_.pool(g).contents(BlockId{i});
      if (node == kv::kNoPrefixNode) continue;
      if (kv_.prefix_index().block(node, g) != BlockId{i})
        fail(fmt::format("group {}: block {} is misfiled", g, i));
      const kv::PrefixNodeId parent = kv_.prefix_index().parent(node);
      const bool is_first = kv_.prefix_index().parent(parent) == kv::kNoPrefixNode;
      if (!is_first && kv_.prefix_index().block(parent, g) == kHole) {
        fail(fmt::format("group {}: cached block {} outlived the one before it", g, i));
      }
    }
  }
}

void Simulation::check_all_ended() {
  for (const auto& [id, choice] : choices_) {
    if (choice.end == End::kNone) fail(fmt::format("sequence {} never ended", number(id)));
  }
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    if (kv_.pool(g).num_free() != kv_.pool(g).num_blocks()) fail(fmt::format("group {} leaks blocks", g));
  }
  if (journal_.sequences.size() != journal_.ends.size()) fail("a journal is not told of an end");
}

}  // namespace kvasir::sim
