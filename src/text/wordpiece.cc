#include "text/wordpiece.h"

#include <algorithm>

namespace kvasir::text {
namespace {

std::size_t num_characters(std::string_view text) {
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::ranges::count_if(text, begins));
}

}  // namespace

WordPieceModel::WordPieceModel(const WordPieceVocab& vocab)
    : at_word_start_(vocab.at_word_start),
      inside_words_(vocab.inside_words),
      unknown_(vocab.unknown),
      max_word_characters_(vocab.max_word_characters) {}

void WordPieceModel::encode(std::string_view word, std::vector<TokenId>& ids) const {
  const std::size_t size = ids.size();
  bool is_known = num_characters(word) <= max_word_characters_;
  for (std::size_t begin = 0; is_known && begin < word.size();) {
    std::size_t longest_end = begin;
    TokenId longest = kNoToken;
    const ByteTrie& trie = begin == 0 ? at_word_start_ : inside_words_;
    trie.for_each_prefix(word, begin, [&](std::size_t end, std::int32_t id) {
      longest_end = end;
      longest = id;
    });
    is_known = longest != kNoToken;
    if (is_known) ids.push_back(longest);
    begin = longest_end;
  }
  if (is_known) return;
  ids.resize(size);
  if (unknown_ != kNoToken) ids.push_back(unknown_);
}

}  // namespace kvasir::text
