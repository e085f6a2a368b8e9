// The tokens that a model wants around one text, or around a pair of texts.
#pragma once

#include <cstdint>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::text {

// A part of what a model sees: a token, or the place of a text.
struct FramePart {
  TokenId token = kNoToken;     // kNoToken: a text
  std::int32_t text_index = 0;  // 0: the first, 1: the second of a pair
  std::uint8_t token_type = 0;  // the segment that BERT's token type embedding tells apart
};

struct SequenceFrame {
  std::vector<TokenId> before = {};  // of one text
  std::vector<TokenId> after = {};
  std::vector<FramePart> pair = {};  // empty: the model has no form for pairs
};

// A pair of texts as one sequence, with the token type of each id.
struct EncodedPair {
  std::vector<TokenId> ids = {};
  std::vector<std::uint8_t> token_types = {};
};

}  // namespace kvasir::text
