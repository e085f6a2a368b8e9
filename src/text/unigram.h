// Unigram (SentencePiece: T5, XLM-R): the split of a word whose pieces are the most probable together.
#pragma once

#include <optional>
#include <vector>

#include "text/byte_trie.h"
#include "text/vocab.h"
#include "text/word_model.h"

namespace kvasir::text {

struct UnigramPiece {
  TokenId id = kNoToken;
  double score = 0;  // log of the probability
};

struct UnigramOptions {
  TokenId unknown = kNoToken;
  // Whether a text that is no piece becomes byte tokens ("<0x41>") instead of the unknown token.
  bool byte_fallback = false;
  // The least score, 10 above the score of an unknown character. Empty: that of the pieces.
  std::optional<double> min_score = {};
};

// Takes time linear in the word, times the length of the longest piece. Sums are doubles: at equal sums the
// earlier start stays, which float would decide otherwise.
//
// Thread safety: immutable. Invariant: the vocabulary outlives the model and does not move.
class UnigramModel final : public WordModel {
 public:
  // Requires: the ids are inside the vocabulary.
  UnigramModel(const Vocab& vocab, const std::vector<UnigramPiece>& pieces, UnigramOptions options);

  void encode(std::string_view word, std::vector<TokenId>& ids) const override;

 private:
  struct Step {  // the best way to a position
    double score = 0;
    std::size_t begin = 0;  // of its last piece
    TokenId id = kNoToken;
    bool is_reached = false;
  };

  std::vector<Step> best_steps(std::string_view word) const;
  void append_unknown(std::string_view text, std::vector<TokenId>& ids) const;

  UnigramOptions options_;
  double unknown_score_ = 0;
  ByteTrie trie_;
  std::vector<UnigramPiece> pieces_;       // the trie's values are places here
  std::vector<TokenId> byte_tokens_ = {};  // 256 or none
};

}  // namespace kvasir::text
