// A tokenizer's tokens as what grammars see of them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "grammar/vocabulary.h"
#include "text/tokenizer.h"

namespace kvasir::grammar {

// Empties the texts of byte tokens (<0x41>) that are the text of an ordinary token, too: models never choose them, and
// what is forced has one token more without need. names[id]: as the vocabulary writes it. Requires: as many of both.
void leave_out_spelled_bytes(std::span<const std::string_view> names, std::span<std::string_view> texts);

// The bytes that a client sees of each token (Tokenizer::decode_next); none of control and unknown tokens, nor of byte
// tokens beside an ordinary token of that byte.
std::shared_ptr<const Vocabulary> make_vocabulary(const text::Tokenizer& tokenizer,
                                                  std::size_t atlas_bytes = Atlas::kMaxBytes);

}  // namespace kvasir::grammar
