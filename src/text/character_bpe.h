// BPE over characters of raw UTF-8 (Gemma 4, and tokenizer.json files of every kind).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/result.h"
#include "text/merge_table.h"
#include "text/model_vocab.h"
#include "text/word_model.h"

namespace kvasir::text {

struct CharacterBpeOptions {
  TokenId unknown = kNoToken;           // for a character without a token
  bool fuse_unknown = false;            // neighbouring unknown characters are one token
  bool byte_fallback = false;           // such a character is byte tokens, where all bytes have one
  bool keeps_known_words = false;       // a word that is a token is not merged up ("ignore_merges")
  bool keeps_known_breaks = false;      // the same for words of line breaks alone
  bool skips_unknown_merges = false;    // merges of pieces that are no tokens are left out, not an error
  std::string continuing_prefix = {};   // before all characters of a word but the first
  std::string end_of_word_suffix = {};  // after the last one
};

// Thread safety: immutable. Time is linear in the word but for a logarithm.
class CharacterBpeModel final : public WordModel {
 public:
  // `merges`: pairs of pieces, best first. kBadFile: one of them, or what they become, is no token.
  static Result<std::unique_ptr<const WordModel>> create(
      ModelVocab vocab, std::span<const std::pair<std::string, std::string>> merges,
      CharacterBpeOptions options);

  void encode(std::string_view word, std::vector<TokenId>& ids) const override;

 private:
  CharacterBpeModel(ModelVocab vocab, std::size_t num_merges, CharacterBpeOptions options);
  Status add_merges(std::span<const std::pair<std::string, std::string>> merges);
  std::vector<TokenId> symbols_of(std::string_view word) const;
  TokenId find_character(std::string_view character, bool is_first, bool is_last) const;
  void encode_segment(std::string_view word, std::vector<TokenId>& ids) const;

  ModelVocab vocab_;
  CharacterBpeOptions options_;
  std::vector<TokenId> byte_tokens_;
  MergeTable merges_;
};

}  // namespace kvasir::text
