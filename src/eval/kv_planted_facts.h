// Texts whose facts are asked for later.
#pragma once

#include <cstdint>
#include <vector>

#include "kvasir/ids.h"
#include "text/tokenizer.h"

namespace kvasir::eval {

// The text with facts written over it here and there, each with a question and its answer somewhere behind. To answer, a model
// must find the fact. Words and places are drawn from the seed alone. Requires: a text of some hundred tokens.
std::vector<TokenId> plant_facts(const text::Tokenizer& tokenizer, std::vector<TokenId> text, std::uint64_t seed);

}  // namespace kvasir::eval
