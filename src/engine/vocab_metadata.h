// A tokenizer's vocabulary as GGUF metadata carry it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/metadata.h"
#include "kvasir/result.h"
#include "text/vocab.h"

namespace kvasir {

// Keys tokenizer.ggml.*. Empty when there is no tokenizer. A token id of -1, in whatever type, is none; one
// outside the vocabulary is left out. Error (kBadFile): a value of the wrong type or out of range.
Result<std::optional<text::VocabData>> read_vocab(const io::Metadata& metadata);

// A line for each guess about these keys, and for each that is passed over although it may matter.
std::vector<std::string> vocab_notices(const io::Metadata& metadata);

// Whether an encoder's file says if BOS and EOS stand around a text. Error (kBadFile) with the flag that says it.
Status check_encoder_says_special_tokens(const io::Metadata& metadata);

}  // namespace kvasir
