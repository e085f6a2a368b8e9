// Rotary position embeddings (Su et al. 2021): the frequencies of every kind of layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/config.h"
#include "model/weight_loader.h"

namespace kvasir::model {

// Gives the layers' kinds of RoPE the file's per-frequency divisors: the tensor rope_freqs.weight, or of longrope
// rope_factors_short.weight or rope_factors_long.weight, as a context of so many tokens asks for. The choice is
// made once, so that a prompt's beginning does not depend on what follows. Errors: kBadFile, also for a divisor
// that is not above 0.
Status load_freq_factors(WeightLoader& loader, std::int32_t context_tokens, ModelConfig& config);

// Radians per position [rotary_dim / 2].
std::vector<double> inverse_frequencies(const RopeConfig& rope);

// The kinds of RoPE that one model's layers use.
class RopeKinds {
 public:
  // Returns the index of this kind for RopeAndStoreOp::rope_index: that of an equal one, if there is any.
  std::int32_t add(const RopeConfig& rope, backend::RopeStyle style);
  // The kind that was added for these; null: none.
  const backend::RopeTable* find(const RopeConfig& rope) const;
  // By index, for Backend::plan(); valid until the next add().
  std::span<const backend::RopeTable> tables() const { return tables_; }

 private:
  struct Kind {
    RopeConfig config;
    backend::RopeStyle style;
    std::vector<double> inverse_frequencies;
  };
  std::vector<Kind> kinds_;
  std::vector<backend::RopeTable> tables_;
};

}  // namespace kvasir::model
