// How the final hidden states of a text become one vector.
#pragma once

#include <cstdint>

namespace kvasir {

enum class Pooling : std::uint8_t {
  kNone,     // there is no vector
  kMean,     // of all tokens
  kLast,     // the last token's
  kFirst,    // the first token's, [CLS]
  kRank,     // the logits of the model's classifier: a cross-encoder's score of a pair of texts
  kOfModel,  // ModelInfo::pooling
};

}  // namespace kvasir
