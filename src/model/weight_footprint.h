// What a model's weights take in memory, and what a token costs of them: from names and shapes alone.
#pragma once

#include <cstdint>

namespace kvasir::model {

struct WeightFootprint {
  std::int64_t packed_bytes = 0;   // matrices as matmuls read them; rounded up to whole groups of rows
  std::int64_t expert_bytes = 0;   // of these, of experts
  std::int64_t skipped_bytes = 0;  // of these, that a head reads hardly any of where only the greatest logit is wanted
  std::int64_t mapped_bytes = 0;   // rows that are looked up in the file as it is
  std::int64_t table_bytes = 0;    // norms, biases and other vectors, as floats
  // Multiplications that a token takes: with all matrices but the experts' and the head, with the head, and with all
  // experts of all layers.
  std::int64_t layer_products = 0;
  std::int64_t head_products = 0;
  std::int64_t expert_products = 0;
  std::int64_t float_products = 0;  // of all of these, those whose inputs are floats
  bool has_gates = false;           // some dense layer is gated

  std::int64_t products() const { return layer_products + head_products + expert_products; }
  std::int64_t resident_bytes() const { return packed_bytes + table_bytes; }
};

}  // namespace kvasir::model
