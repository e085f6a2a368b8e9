#include "sim/fake_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/seeded_random.h"

namespace kvasir::sim {
namespace {

std::size_t slot_index(const kv::BlockTable& table, std::int32_t position) {
  return static_cast<std::size_t>(index_of(table.block_at(position))) * kv::kTokensPerBlock +
         static_cast<std::size_t>(kv::BlockTable::slot_at(position));
}

// The slots of every id of a layer block: there are more than there is room for.
std::size_t num_layer_slots(const kv::KvCacheManager& kv) {
  const std::int32_t group = kv.prefill_only().group();
  const std::int64_t num_ids = kv.cells().directory(group).stride * kv.cells().cells_per_block(group);
  return static_cast<std::size_t>(num_ids * kv::kTokensPerBlock);
}

TokenId token_of(const sched::ScheduledSequence& scheduled, std::int32_t row) {
  const std::int32_t num_committed = scheduled.num_committed_tokens();
  return row < num_committed ? scheduled.committed_token_ids()[static_cast<std::size_t>(row)]
                             : scheduled.draft_token_ids[static_cast<std::size_t>(row - num_committed)];
}

}  // namespace

FakeEngine::FakeEngine(const kv::KvCacheManager& kv, std::int32_t vocab_size,
                       std::int32_t max_prefill_only_tokens)
    : kv_(kv),
      vocab_size_(vocab_size),
      layer_memory_(num_layer_slots(kv)),
      hidden_(static_cast<std::size_t>(max_prefill_only_tokens)),
      cells_(kv) {
  for (std::int32_t g = 0; g < kv.num_groups(); ++g) {
    memory_.emplace_back(static_cast<std::size_t>(kv.pool(g).num_blocks()) * kv::kTokensPerBlock);
  }
}

std::string FakeEngine::convert(const kv::CellConversions& conversions) {
  for (const kv::CellStore::BlockCopy& copy : kv_.cells().block_copies()) {
    std::vector<Slot>& slots = memory_[static_cast<std::size_t>(copy.group)];
    std::copy_n(slots.begin() + std::ptrdiff_t{index_of(copy.from)} * kv::kTokensPerBlock, kv::kTokensPerBlock,
                slots.begin() + std::ptrdiff_t{index_of(copy.to)} * kv::kTokensPerBlock);
    cells_.copy_block(copy);
  }
  return cells_.convert(conversions);
}

std::string FakeEngine::run_layers(std::span<const sched::ScheduledSequence> scheduled,
                                   const sched::LayerPass& pass) {
  for (std::int32_t layer = pass.first_layer; layer < pass.end_layer; ++layer) {
    std::int32_t row = pass.first_hidden_row;
    for (const sched::ScheduledSequence& sequence : scheduled) {
      if (std::string fault = run_layer(sequence, layer, row); !fault.empty()) {
        return fmt::format("sequence {}, layer {}: {}", static_cast<std::int64_t>(sequence.id), layer, fault);
      }
      row += sequence.num_tokens;
    }
  }
  return {};
}

std::string FakeEngine::run_layer(const sched::ScheduledSequence& scheduled, std::int32_t layer,
                                  std::int32_t row) {
  const std::int32_t group = kv_.prefill_only().group();
  const auto stride = static_cast<std::int32_t>(kv_.cells().directory(group).stride);
  for (std::int32_t i = 0; i < scheduled.num_tokens; ++i, ++row) {
    const std::int32_t position = scheduled.first_position + i;
    LayerSlot& hidden = hidden_.at(static_cast<std::size_t>(row));
    if (layer > 0 && hidden != LayerSlot{scheduled.id, position, layer - 1}) {
      return fmt::format("hidden row {} is not that of position {} after the layer before", row, position);
    }
    hidden = {scheduled.id, position, layer};
    const kv::BlockTable& table = scheduled.block_tables[static_cast<std::size_t>(group)];
    const std::int32_t layer_block = index_of(table.block_at(position));
    const BlockId block{layer_block % stride};
    const std::int32_t part = layer_block / stride;  // of the block: a cell
    if (kv_.pool(group).ref_count(block) != 1 || kv_.cells().at(group, block, part).is_gone()) {
      return fmt::format("position {} writes a cell that is not its own", position);
    }
    const bool is_first_of_block = part == 0 && kv::BlockTable::slot_at(position) == 0;
    if (layer == 0 && is_first_of_block) cells_.begin_block(group, block);
    if (std::string fault = cells_.check(group, block); !fault.empty()) return fault;
    layer_memory_[slot_index(table, position)] = {scheduled.id, position, layer};
    for (std::int32_t key = 0; key < position; ++key) {
      if (layer_memory_[slot_index(table, key)] != LayerSlot{scheduled.id, key, layer}) {
        return fmt::format("position {} does not find the KV of {}", position, key);
      }
    }
  }
  return {};
}

FakeEngine::Outcome FakeEngine::run(const sched::ScheduledSequence& scheduled, const SoloRun& solo,
                                    const NamespaceHash& hash, std::uint64_t sample_seed) {
  Outcome outcome;
  std::uint64_t state = 0;
  bool is_reached = true;
  for (std::int32_t row = 0; row < scheduled.num_tokens; ++row) {
    const std::int32_t num_guessed = row + 1 - scheduled.num_committed_tokens();
    if (num_guessed > 0) {
      const TokenId guess = scheduled.draft_token_ids[static_cast<std::size_t>(num_guessed) - 1];
      is_reached = is_reached && outcome.next_tokens.back() == guess;
    }
    const bool is_behind_end = scheduled.first_position + row >= solo.num_states();
    outcome.fault = is_reached && !is_behind_end ? run_row(scheduled, row, solo, hash, state)
                                                 : spoil_row(scheduled, row);
    if (!outcome.fault.empty()) return outcome;
    if (!scheduled.samples || num_guessed < 0 || !is_reached) continue;
    // Behind the end of the answer every guess is right: the scheduler has to stop there.
    const bool is_guessed = num_guessed < scheduled.num_draft_tokens();
    const TokenId next = !is_behind_end ? sample(state, sample_seed, vocab_size_)
                         : is_guessed   ? scheduled.draft_token_ids[static_cast<std::size_t>(num_guessed)]
                                        : TokenId{0};
    outcome.next_tokens.push_back(next);
  }
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    if (auto fault = check_cells(scheduled, g)) return {.fault = std::move(*fault)};
  }
  const auto num_accepted = std::max<std::int32_t>(
      0, static_cast<std::int32_t>(std::ssize(outcome.next_tokens)) - 1);
  look_at_attention(scheduled, scheduled.num_committed_tokens() + num_accepted, state);
  return outcome;
}

std::string FakeEngine::run_row(const sched::ScheduledSequence& scheduled, std::int32_t row,
                                const SoloRun& solo, const NamespaceHash& hash, std::uint64_t& state) {
  const std::int32_t position = scheduled.first_position + row;
  const TokenId token = token_of(scheduled, row);
  state = begin_state(hash.at(position), token, position);
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    if (auto fault = attend(scheduled, g, position, solo, state)) return std::move(*fault);
  }
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    if (auto fault = store(scheduled, g, position, token, state)) return std::move(*fault);
  }
  if (row >= scheduled.first_logits_row && state != solo.state_at(position)) {
    return fmt::format("the logits at position {} differ from the solo run's", position);
  }
  return {};
}

// A rejected guess writes its KV too, which no sequence may read.
std::string FakeEngine::spoil_row(const sched::ScheduledSequence& scheduled, std::int32_t row) {
  constexpr std::uint64_t kRejected = 0x72656a6563746564u;
  for (std::int32_t g = 0; g < kv_.num_groups(); ++g) {
    const std::int32_t position = scheduled.first_position + row;
    if (auto fault = store(scheduled, g, position, token_of(scheduled, row), kRejected))
      return std::move(*fault);
  }
  return {};
}

std::optional<std::string> FakeEngine::attend(const sched::ScheduledSequence& scheduled, std::int32_t group,
                                              std::int32_t position, const SoloRun& solo,
                                              std::uint64_t& state) const {
  const kv::BlockTable& table = scheduled.block_tables[static_cast<std::size_t>(group)];
  const std::int32_t window = kv_.group(group).window_tokens;
  for (std::int32_t key = window == 0 ? 0 : std::max(0, position - window + 1); key < position; ++key) {
    if (key / kv::kTokensPerBlock >= table.size() || table.block_at(key) == kHole) {
      return fmt::format("group {}: position {} needs the KV of {}, which has no block", group, position,
                         key);
    }
    const Slot& slot = memory_[static_cast<std::size_t>(group)][slot_index(table, key)];
    if (slot.kv != kv_of(solo.state_at(key), group)) {
      return fmt::format(
          "group {}: position {} reads block {} for position {}, which holds token {} at position {} "
          "written by sequence {}",
          group, position, index_of(table.block_at(key)), key, slot.token, slot.position,
          static_cast<std::int64_t>(slot.writer));
    }
    state = fold_attended(state, slot.kv);
  }
  state = fold_attended(state, kNextGroup);
  return std::nullopt;
}

// Every cell of the sequence's blocks holds what was written to it, or is gone.
std::optional<std::string> FakeEngine::check_cells(const sched::ScheduledSequence& scheduled,
                                                   std::int32_t group) const {
  const std::int32_t num_tokens = scheduled.first_position + scheduled.num_tokens;
  const auto blocks = scheduled.block_tables[static_cast<std::size_t>(group)].blocks();
  for (std::int32_t i = 0; i < kv::blocks_for(num_tokens); ++i) {
    const BlockId block = blocks[static_cast<std::size_t>(i)];
    if (block == kHole) continue;
    if (std::string fault = cells_.check(group, block); !fault.empty()) return fault;
  }
  return std::nullopt;
}

// Some attention or other, for policies that want to know.
void FakeEngine::look_at_attention(const sched::ScheduledSequence& scheduled, std::int32_t num_tokens,
                                   std::uint64_t seed) const {
  for (kv::SequenceScores& scores : scheduled.scores) {
    if (scores.num_cells() == 0) continue;
    SeededRandom random(seed);
    kv::StepScores step{.num_blocks = kv::blocks_for(scheduled.first_position + num_tokens)};
    step.num_queries.assign(static_cast<std::size_t>(scores.num_cells()), num_tokens);
    for (std::int32_t i = 0; i < scores.num_cells() * step.num_blocks; ++i) {
      // Now and then a query asks for one block alone.
      step.sum.push_back(static_cast<float>(random.percent(3) ? 1'000'000 : random.between(0, 1000)));
    }
    step.greatest = step.sum;
    scores.add(step);
  }
}

std::optional<std::string> FakeEngine::store(const sched::ScheduledSequence& scheduled, std::int32_t group,
                                             std::int32_t position, TokenId token, std::uint64_t state) {
  const kv::BlockTable& table = scheduled.block_tables[static_cast<std::size_t>(group)];
  if (position / kv::kTokensPerBlock >= table.size() || table.block_at(position) == kHole) {
    return fmt::format("group {}: position {} has no block to write to", group, position);
  }
  const BlockId block = table.block_at(position);
  if (kv_.pool(group).ref_count(block) != 1 || kv_.pool(group).contents(block) != kv::kNoPrefixNode) {
    return fmt::format("group {}: position {} writes block {}, which is {}", group, position, index_of(block),
                       kv_.pool(group).ref_count(block) != 1 ? "shared" : "cached");
  }
  if (kv::BlockTable::slot_at(position) == 0) cells_.begin_block(group, block);
  memory_[static_cast<std::size_t>(group)][slot_index(table, position)] = {
      .kv = kv_of(state, group), .token = token, .position = position, .writer = scheduled.id};
  return std::nullopt;
}

}  // namespace kvasir::sim
