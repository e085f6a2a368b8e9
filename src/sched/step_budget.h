// How many tokens one step may run, and who may take them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvasir::sched {

// Sequences with one token left to compute (decoding) have theirs set aside before anyone computes a prompt
// chunk, so a long prompt never delays running streams by more than its chunk.
class StepBudget {
 public:
  // Requires: num_decoding <= max_tokens.
  StepBudget(std::int32_t max_tokens, std::int32_t max_chunk_tokens, std::int32_t num_decoding)
      : chunk_tokens_(max_tokens - num_decoding), max_chunk_tokens_(max_chunk_tokens) {}

  // How many of its remaining tokens a sequence that was not counted as decoding may run; 0 when the step is
  // full.
  std::int32_t take_chunk(std::int32_t num_remaining) {
    const std::int32_t granted = std::min({num_remaining, max_chunk_tokens_, chunk_tokens_});
    chunk_tokens_ -= granted;
    return granted;
  }
  // Of a sequence that does not run after all.
  void give_back(std::int32_t num_tokens) { chunk_tokens_ += num_tokens; }
  bool has_room() const { return chunk_tokens_ > 0; }

 private:
  std::int32_t chunk_tokens_;
  std::int32_t max_chunk_tokens_;
};

}  // namespace kvasir::sched
