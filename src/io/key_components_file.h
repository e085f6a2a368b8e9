// The file of what keys of a model are like, for cells of k2pv2; it lies beside the model's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

// One KV head's, as kv::KeyStatistics has them.
struct HeadKeys {
  std::vector<float> mean, directions, deviations;
  std::vector<std::int8_t> bits;
};

// GGUF: heads of the layers without a window, in their order. Directions are kept as f16.
struct KeyComponentsFile {
  std::string model;  // its fingerprint
  std::int32_t head_dim = 0;
  std::vector<HeadKeys> heads;
};

// The path of the file of the model in this file.
std::string key_components_path(const std::string& model_path);

// Nothing where there is none. Error (kBadFile) naming the file: it is none of write_key_components's.
Result<std::optional<KeyComponentsFile>> read_key_components(const std::string& path);
// Replaces what was there. Error: kMachine.
Status write_key_components(const std::string& path, const KeyComponentsFile& file);

}  // namespace kvasir::io
