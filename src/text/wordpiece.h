// WordPiece (BERT): the longest piece first, then the longest that goes on.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "text/byte_trie.h"
#include "text/word_model.h"

namespace kvasir::text {

struct WordPieceVocab {
  // Pieces without the marks that tell the two kinds apart ("##", or "▁" in GGUF files).
  std::vector<std::pair<std::string_view, TokenId>> at_word_start = {};
  std::vector<std::pair<std::string_view, TokenId>> inside_words = {};
  TokenId unknown = kNoToken;
  std::size_t max_word_characters = 100;  // a longer word is unknown
};

// Takes time linear in the word, times the length of the longest piece. Thread safety: immutable.
class WordPieceModel final : public WordModel {
 public:
  // The texts are copied.
  explicit WordPieceModel(const WordPieceVocab& vocab);

  // A word that no pieces make up is one unknown token as a whole.
  void encode(std::string_view word, std::vector<TokenId>& ids) const override;

 private:
  ByteTrie at_word_start_;
  ByteTrie inside_words_;
  TokenId unknown_ = kNoToken;
  std::size_t max_word_characters_ = 0;
};

}  // namespace kvasir::text
