// Adapters in folders of PEFT.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "lora/adapter_file.h"

namespace kvasir::lora {

// Numbers of its tensors, at most; 0: it cannot be read.
std::int64_t num_peft_numbers(const std::string& folder);

// The rows of a Llama's queries and keys get the order that GGUF files have them in. Errors: kBadFile, without the path.
Result<std::vector<AdapterTensor>> read_peft_adapter(const std::string& folder, const model::ModelConfig& config);

}  // namespace kvasir::lora
