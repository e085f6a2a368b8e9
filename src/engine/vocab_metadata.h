// A tokenizer's vocabulary as GGUF metadata carry it.
#pragma once

#include <optional>

#include "io/metadata.h"
#include "kvasir/result.h"
#include "text/vocab.h"

namespace kvasir {

// Keys tokenizer.ggml.*. Empty when there is no tokenizer. Error (kBadFile): a value of the wrong type or
// out of range.
Result<std::optional<text::VocabData>> read_vocab(const io::Metadata& metadata);

}  // namespace kvasir
