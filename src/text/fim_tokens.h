// The tokens that mark the parts of a prompt whose middle is to be filled in.
#pragma once

#include "kvasir/ids.h"
#include "text/vocab.h"

namespace kvasir::text {

// kNoToken where the model has none.
struct FimTokens {
  TokenId prefix = kNoToken;
  TokenId suffix = kNoToken;
  TokenId middle = kNoToken;
  TokenId repository = kNoToken;  // before other files of a repository
  TokenId separator = kNoToken;   // before each file

  bool are_there() const { return prefix != kNoToken && suffix != kNoToken && middle != kNoToken; }
};

// Known by their texts, as in find_special_tokens().
FimTokens fim_tokens_of(const Vocab& vocab);

}  // namespace kvasir::text
