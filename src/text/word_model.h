// Turns one word into ids, once text is normalised and split.
#pragma once

#include <string_view>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir::text {

// Thread safety: immutable; any thread may call encode.
class WordModel {
 public:
  WordModel() = default;
  WordModel(const WordModel&) = delete;
  WordModel& operator=(const WordModel&) = delete;
  virtual ~WordModel() = default;

  // Appends the ids of a word. Requires: word is well-formed UTF-8. A word that the model cannot express is its
  // unknown token, or nothing where it has none.
  virtual void encode(std::string_view word, std::vector<TokenId>& ids) const = 0;
};

}  // namespace kvasir::text
