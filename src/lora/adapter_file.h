// LoRA adapters as their files have them (Hu et al. 2021).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "model/config.h"
#include "model/model.h"

namespace kvasir::lora {

// The addition to one matrix of the model: outputs += factor * b (a inputs).
struct AdapterTensor {
  std::string name;  // of the matrix: "blk.0.attn_q.weight"
  std::int32_t rank = 0;
  std::int64_t num_inputs = 0, num_outputs = 0;
  std::vector<float> a;  // [rank, num_inputs]
  std::vector<float> b;  // [num_outputs, rank]
  float factor = 1.0f;   // alpha / r, of rsLoRA alpha / sqrt(r)
};

struct AdapterFile {
  std::vector<AdapterTensor> tensors;
  // Other numbers have another version. It is no protection against forgery.
  std::uint64_t version = 0;
};

// The floats of a file take at most so much while it is read; 0: it cannot be read.
std::int64_t max_read_bytes(const std::string& path);

// A folder of PEFT (adapter_config.json, adapter_model.safetensors) or a GGUF file. Everything in it is used; else it is refused by name: other kinds of
// adapters, DoRA, biases, whole modules, matrices that the model lacks or that have another shape, numbers that are
// none. Errors: kBadFile, one line that begins with the path.
Result<AdapterFile> read_adapter(const std::string& path, const model::Model& model);

}  // namespace kvasir::lora
