// The modules of a sentence-transformers folder: what follows the last layer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

// GGUF's numbers (pooling_type).
enum class PoolingKind : std::uint8_t { kMean = 1, kFirst = 2, kLast = 3 };

struct DenseModule {
  std::string folder;  // of its model.safetensors
  std::int64_t in_features = 0, out_features = 0;
};

struct SentenceModules {
  std::optional<PoolingKind> pooling;
  std::vector<DenseModule> dense;              // linear layers after the pooling, in their order
  bool normalizes = false;                     // to unit length, at the end
  std::map<std::string, std::string> prompts;  // by name: text that precedes an input
};

// Reads modules.json, the configurations that it names, and the prompts of config_sentence_transformers.json. All
// empty when there is no modules.json. Errors: kBadFile naming the file: a module of another kind, a pooling or an
// activation that is not computed here, a path that leads out of the folder.
Result<SentenceModules> read_sentence_modules(const std::string& folder);

}  // namespace kvasir::io
