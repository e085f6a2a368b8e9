// The modules of a sentence-transformers folder: what follows the last layer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

// Where open_folder puts prompts: behind the prefix their names, under the other key the default one's.
inline constexpr std::string_view kPromptKeyPrefix = "sentence_transformers.prompt.";
inline constexpr std::string_view kDefaultPromptKey = "sentence_transformers.default_prompt_name";

// GGUF's numbers (pooling_type).
enum class PoolingKind : std::uint8_t { kMean = 1, kFirst = 2, kLast = 3 };

struct DenseModule {
  std::string folder;  // of its model.safetensors
  std::int64_t in_features = 0, out_features = 0;
};

struct SentenceModules {
  std::optional<PoolingKind> pooling;
  bool pools_prompts = true;                        // their tokens count too
  std::vector<DenseModule> dense;                   // linear layers after the pooling, in their order
  bool normalizes = false;                          // to unit length, at the end
  std::map<std::string, std::string> prompts = {};  // by name: text that precedes an input
  std::string default_prompt_name = {};             // of the one where nobody names one; empty: none
};

// Reads modules.json, the configurations that it names, and the prompts of config_sentence_transformers.json. All
// empty when there is no modules.json. There are no prompts where the pooling passes their tokens over (include_prompt
// false), which is not computed here. Errors: kBadFile naming the file: a module of another kind, a pooling or an
// activation that is not computed here, a path that leads out of the folder.
Result<SentenceModules> read_sentence_modules(const std::string& folder);

}  // namespace kvasir::io
