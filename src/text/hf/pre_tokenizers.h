// How a normalised text is split into words: the pre-tokenizers of tokenizer.json files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/hf/match_finder.h"

namespace kvasir::text::hf {

// A text and the pieces it is split into, in order; what lies between them is left out.
struct Pieces {
  struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool at_text_start = false;  // whether the very first text begins with it
  };
  std::string text = {};
  std::vector<Piece> pieces = {};

  std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

// Splits pieces further, and may rewrite their text. Any thread may call it. No piece is empty afterwards.
using PreTokenizer = std::function<void(Pieces& pieces)>;

// The treatment of a match.
enum class SplitBehavior : std::uint8_t {
  kIsolated,
  kRemoved,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous,  // neighbouring matches are one piece
};

// `invert`: what lies between matches counts as matches.
PreTokenizer split(MatchFinder find, SplitBehavior behavior, bool invert = false);

enum class PrependScheme : std::uint8_t { kAlways, kFirst, kNever };  // kFirst: only where the text starts

// Spaces become `mark`, which begins a piece; `scheme` says before which pieces one is put.
PreTokenizer metaspace(std::string mark, PrependScheme scheme, bool splits);
// GPT-2's words, if use_regex, in the byte alphabet.
PreTokenizer byte_level(bool add_prefix_space, bool use_regex);
PreTokenizer whitespace_split();
// \w+|[^\w\s]+
PreTokenizer words_and_symbols();
PreTokenizer digits(bool individually);
PreTokenizer punctuation(SplitBehavior behavior);
PreTokenizer bert_pre_tokenizer();
PreTokenizer unicode_scripts();
PreTokenizer fixed_length(std::size_t num_characters);
PreTokenizer sequence(std::vector<PreTokenizer> steps);

}  // namespace kvasir::text::hf
