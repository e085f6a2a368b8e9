// Adapters in GGUF files, as llama.cpp's converter writes them.
#pragma once

#include <string>
#include <vector>

#include "kvasir/result.h"
#include "lora/adapter_file.h"

namespace kvasir::lora {

// Errors: kBadFile, without the path.
Result<std::vector<AdapterTensor>> read_gguf_adapter(const std::string& path, const model::ModelConfig& config);

}  // namespace kvasir::lora
