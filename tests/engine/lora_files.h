// Writes adapters of drawn numbers, and the model that one makes, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/weight_source.h"

namespace kvasir::testing {

// Of one matrix, in the order of GGUF's rows.
struct LoraMatrix {
  std::string name;  // "blk.0.attn_q.weight"
  std::int32_t rank = 0;
  std::int64_t num_inputs = 0, num_outputs = 0;
  std::vector<float> a, b;  // [rank, num_inputs], [num_outputs, rank]
};
using LoraNumbers = std::vector<LoraMatrix>;

// For all matrices of the layers of a dense model.
LoraNumbers random_lora(const io::WeightSource& model, std::int32_t rank, std::uint32_t seed);

void write_gguf_lora(const LoraNumbers& numbers, const std::string& architecture, float alpha, const std::string& path);
// `config`: members of adapter_config.json. Rows of queries and keys are in the order of a Llama's folder.
void write_peft_lora(const LoraNumbers& numbers, const io::WeightSource& model, const std::string& config,
                     const std::string& folder);
// The model's F32 file with factor * b a added.
void write_merged(const std::string& model_path, const io::WeightSource& model, const LoraNumbers& numbers, float factor,
                  const std::string& path);

}  // namespace kvasir::testing
