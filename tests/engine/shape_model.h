// Model files with the shapes of well-known models and random weights, for machines that have no model's file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kvasir/result.h"
#include "quant/dtype.h"

namespace kvasir::testing {

struct ModelShape {
  const char* name;
  const char* architecture;
  std::int32_t num_layers, hidden_size, intermediate_size, num_heads, num_kv_heads, head_dim, vocab_size;
  std::int32_t num_experts, num_used_experts;
  DType layer_type, head_type;
  bool is_tied;  // the head is the table of embeddings, in head_type
};

// The shapes of SmolLM2 135M, Gemma 3 270M, Llama 3 8B and Qwen 3 30B-A3B.
std::span<const ModelShape> model_shapes();

// Tensors are pieces of the same random blocks. The same arguments give the same bytes. Error (kMachine): the disk.
Status write_shape_model(const ModelShape& shape, const std::string& path, std::uint32_t seed);

}  // namespace kvasir::testing
