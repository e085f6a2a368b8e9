// Tells one model's file from another's without reading all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

// The file's size and a hash (FNV-1a, 64 bits) of 64 pieces of 4 KiB spread over it, such as
// "98308000-9f3c51a0b2d4e677": the same for the same bytes on every machine. It is no protection against
// forgery. Of a folder: the same over all of its safetensors files; of a split set: over all of its files. Error
// (kBadFile): it cannot be read.
Result<std::string> model_fingerprint(const std::string& model_path);

// The files that hold the model's weights: the file itself, all of its split set, or a folder's safetensors by name.
std::vector<std::string> weight_files(const std::string& model_path);

// Their bytes; files that cannot be read count as empty.
std::int64_t weight_file_bytes(const std::string& model_path);

}  // namespace kvasir::io
