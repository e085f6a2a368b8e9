// A model file's description of itself, in the few figures that people ask for.
#pragma once

#include <cstdint>
#include <string>

#include "io/weight_source.h"

namespace kvasir::io {

struct ModelSummary {
  std::string name;                 // general.name; empty when the file has none
  std::string architecture;         // general.architecture; empty when the file has none
  std::string quantization;         // e.g. "Q4_K_M": the file's own word, else the type of most weight bytes
  std::string license;              // empty when the file names none
  std::int64_t num_parameters = 0;  // elements of all tensors
  std::int64_t weight_bytes = 0;
  std::int64_t context_length_tokens = 0;  // the length that the model was trained for; 0: not said
  std::int64_t num_layers = 0;             // 0: not said
  std::int64_t vocab_size = 0;             // 0: no tokenizer in the file
  bool has_chat_template = false;
};

// Never fails: a field of the wrong type counts as absent, for the loader reports those with their reason.
ModelSummary summarize(const WeightSource& source);

}  // namespace kvasir::io
