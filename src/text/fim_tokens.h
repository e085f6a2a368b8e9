// The tokens that mark the parts of a prompt whose middle is to be filled in.
#pragma once

#include <functional>
#include <string_view>

#include "kvasir/ids.h"

namespace kvasir::text {

struct VocabData;

// kNoToken where the model has none.
struct FimTokens {
  TokenId prefix = kNoToken;
  TokenId suffix = kNoToken;
  TokenId middle = kNoToken;
  TokenId repository = kNoToken;  // before other files of a repository
  TokenId separator = kNoToken;   // before each file

  bool are_there() const { return prefix != kNoToken && suffix != kNoToken && middle != kNoToken; }
};

// The file's own ids count first; the others are found by their well-known texts. `find` gives the id of a text, or kNoToken.
FimTokens find_fim_tokens(const VocabData& named, const std::function<TokenId(std::string_view)>& find);

}  // namespace kvasir::text
