// Rotary position embeddings (Su et al. 2021): the frequencies of every kind of layer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "model/config.h"
#include "model/weight_loader.h"

namespace kvasir::model {

// The file's per-frequency divisors (tensor rope_freqs.weight), all above 0; empty when there are none.
Result<std::vector<float>> load_freq_factors(WeightLoader& loader, const RopeConfig& rope);

// The kinds of RoPE that one model's layers use.
class RopeKinds {
 public:
  // Returns the index of this kind for RopeAndStoreOp::rope_index.
  std::int32_t add(const RopeConfig& rope, kernels::RopeStyle style);
  // By index, for Backend::plan(); valid until the next add().
  std::span<const backend::RopeTable> tables() const { return tables_; }

 private:
  struct Kind {
    std::vector<double> inverse_frequencies;
    kernels::RopeStyle style;
  };
  std::vector<Kind> kinds_;
  std::vector<backend::RopeTable> tables_;
};

}  // namespace kvasir::model
