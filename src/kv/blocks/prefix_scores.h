// The attention that cached prefixes got while they were computed.
#pragma once

#include <unordered_map>
#include <vector>

#include "kv/cells/sequence_scores.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// A policy that goes on behind a prefix which another sequence has computed knows of it what it would have seen
// itself. Kept by the last block of the prefix in the first group without a window, and gone with it.
//
// Thread safety: none; the engine thread is the only caller.
class PrefixScores {
 public:
  // `scores`: one per layer group. Requires: nothing is kept by this block.
  void keep(BlockId last, std::vector<SequenceScores> scores) { of_block_.emplace(last, std::move(scores)); }
  // Null: nothing of this memory is kept.
  const std::vector<SequenceScores>* find(BlockId last, const AttentionMemory& memory) const {
    const auto found = of_block_.find(last);
    return found == of_block_.end() || found->second.front().memory() != memory ? nullptr : &found->second;
  }
  bool has(BlockId last) const { return of_block_.contains(last); }
  void forget(BlockId last) { of_block_.erase(last); }

 private:
  std::unordered_map<BlockId, std::vector<SequenceScores>> of_block_;
};

}  // namespace kvasir::kv
