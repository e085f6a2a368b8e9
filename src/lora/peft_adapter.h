// Adapters in folders of PEFT.
#pragma once

#include <string>
#include <vector>

#include "kvasir/result.h"
#include "lora/adapter_file.h"

namespace kvasir::lora {

// The rows of a Llama's queries and keys get the order that GGUF files have them in. Errors: kBadFile, without the path.
Result<std::vector<AdapterTensor>> read_peft_adapter(const std::string& folder, const model::ModelConfig& config);

}  // namespace kvasir::lora
