// A tokenizer's tokens as what grammars see of them.
#pragma once

#include <memory>

#include "grammar/vocabulary.h"
#include "text/tokenizer.h"

namespace kvasir::grammar {

// The bytes that a client sees of each token (Tokenizer::decode_next); none of control and unknown tokens.
std::shared_ptr<const Vocabulary> make_vocabulary(const text::Tokenizer& tokenizer);

}  // namespace kvasir::grammar
