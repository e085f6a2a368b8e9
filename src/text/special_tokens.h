// Roles that tokens have by convention: their text tells, because many files do not.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "text/vocab.h"

namespace kvasir::text {

// Corrections of a file's token types, and the full list of ids that end a generation.
struct SpecialTokens {
  std::vector<TokenId> control;
  std::vector<TokenId> user_defined;
  std::vector<TokenId> normal;
  std::vector<TokenId> end_of_generation;  // sorted, without repeats
};

// Collects the same set as llama.cpp: the ids the file names, the well-known texts, and the padding,
// repository and separator tokens of fill-in-the-middle models.
// `find` looks a text up (kNoToken: absent); `data` gives the ids the file names, which are valid.
SpecialTokens find_special_tokens(const VocabData& data,
                                  const std::function<TokenId(std::string_view)>& find);

}  // namespace kvasir::text
