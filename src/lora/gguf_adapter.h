// Adapters in GGUF files, as llama.cpp's converter writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "lora/adapter_file.h"

namespace kvasir::lora {

// Numbers of its tensors; 0: it cannot be read.
std::int64_t num_gguf_numbers(const std::string& path);

// Errors: kBadFile, without the path.
Result<std::vector<AdapterTensor>> read_gguf_adapter(const std::string& path, const model::ModelConfig& config);

}  // namespace kvasir::lora
