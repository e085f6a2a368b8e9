#include "text/hf/pre_tokenizers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/code_point.h"
#include "text/byte_alphabet.h"
#include "text/hf/library_classes.h"
#include "text/hf/normalizers.h"
#include "text/unicode/general_category.h"
#include "text/word_end.h"

namespace kvasir::text::hf {
namespace {

using enum GeneralCategory;

struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_match = false;
};

// Matches and what lies between them.
std::vector<Part> parts_of(std::string_view text, const MatchFinder& find, bool invert) {
  std::vector<Part> parts;
  std::size_t plain_begin = 0;
  find(text, [&](std::size_t begin, std::size_t end) {
    if (begin > plain_begin) parts.push_back({plain_begin, begin, invert});
    parts.push_back({begin, end, !invert});
    plain_begin = end;
  });
  if (plain_begin < text.size()) parts.push_back({plain_begin, text.size(), invert});
  return parts;
}

bool joins_previous(const Part& part, bool after_match, SplitBehavior behavior) {
  if (behavior == SplitBehavior::kContiguous) return part.is_match == after_match;
  return part.is_match && !after_match;
}

// The pieces that a behaviour makes of parts, in place. MergedWithNext is MergedWithPrevious from the other end.
void merge_parts(std::vector<Part>& parts, SplitBehavior behavior) {
  if (behavior == SplitBehavior::kIsolated) return;
  if (behavior == SplitBehavior::kRemoved) {
    std::erase_if(parts, [](const Part& part) { return part.is_match; });
    return;
  }
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::ranges::reverse(parts);
  std::vector<Part> merged;
  bool after_match = false;
  for (const Part& part : parts) {
    if (!merged.empty() && joins_previous(part, after_match, behavior)) {
      merged.back().begin = std::min(merged.back().begin, part.begin);
      merged.back().end = std::max(merged.back().end, part.end);
    } else {
      merged.push_back(part);
    }
    after_match = part.is_match;
  }
  if (backwards) std::ranges::reverse(merged);
  parts = std::move(merged);
}

void split_pieces(Pieces& pieces, const MatchFinder& find, SplitBehavior behavior, bool invert) {
  std::vector<Pieces::Piece> split;
  for (const Pieces::Piece& piece : pieces.pieces) {
    std::vector<Part> parts = parts_of(pieces.view(piece), find, invert);
    merge_parts(parts, behavior);
    for (const Part& part : parts) {
      split.push_back(
          {piece.begin + part.begin, piece.begin + part.end, piece.at_text_start && part.begin == 0});
    }
  }
  pieces.pieces = std::move(split);
}

// rewrite(text, piece) -> the piece's new text, not empty.
template <class Rewrite>
void rewrite_pieces(Pieces& pieces, Rewrite rewrite) {
  std::string text;
  text.reserve(pieces.text.size() + pieces.text.size() / 2);
  for (Pieces::Piece& piece : pieces.pieces) {
    const std::size_t begin = text.size();
    text += rewrite(pieces.view(piece), piece);
    piece.begin = begin;
    piece.end = text.size();
  }
  pieces.text = std::move(text);
}

bool is_numeric(char32_t c) { return is_category_between(c, kNd, kNo); }

// \w as Rust's regular expressions have it: with joiners, and letters in circles and squares.
bool is_word_character(char32_t c) {
  const GeneralCategory category = general_category(c);
  if ((category >= kLu && category <= kNl) || category == kPc) return true;
  const auto between = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return between(0x200C, 0x200D) || between(0x24B6, 0x24E9) || between(0x1F130, 0x1F149) ||
         between(0x1F150, 0x1F169) || between(0x1F170, 0x1F189);
}

// Runs of characters of one kind; kind(code_point) -> int, and none of negative kinds.
template <class Kind>
MatchFinder find_runs(Kind kind) {
  return [kind](std::string_view text, const VisitMatch& visit) {
    std::size_t begin = 0;
    int current = -1;
    for (std::size_t at = 0; at < text.size();) {
      const auto [code_point, size_bytes] = code_point_at(text, at);
      if (const int own = kind(code_point); own != current) {
        if (current >= 0) visit(begin, at);
        begin = at;
        current = own;
      }
      at += size_bytes;
    }
    if (current >= 0) visit(begin, text.size());
  };
}

int word_kind(char32_t c) {
  if (is_white_space(c)) return -1;
  return is_word_character(c) ? 1 : 0;
}

void find_gpt2_words(std::string_view text, const VisitMatch& visit) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = gpt2_word_end(text, begin);
    visit(begin, end);
    begin = end;
  }
}

// As the library does it: characters of no script go with what comes before, and are lost at the start.
void find_script_starts(std::string_view text, const VisitMatch& visit) {
  std::uint32_t current = 0;
  std::size_t begin = text.size();
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    const std::uint32_t script = library_script(code_point);
    if (script != 0 && script != current) {
      if (current != 0) visit(begin, at);
      begin = at;
      current = script;
    }
    at += size_bytes;
  }
  if (begin < text.size()) visit(begin, text.size());
}

}  // namespace

PreTokenizer split(MatchFinder find, SplitBehavior behavior, bool invert) {
  return [find = std::move(find), behavior, invert](Pieces& pieces) {
    split_pieces(pieces, find, behavior, invert);
  };
}

PreTokenizer metaspace(std::string mark, PrependScheme scheme, bool splits) {
  return [mark, scheme, splits, spaces = replace(find_text(" "), mark),
          marks = find_text(mark)](Pieces& pieces) {
    rewrite_pieces(pieces, [&](std::string_view text, const Pieces::Piece& piece) {
      std::string marked = spaces(std::string(text));
      const bool is_wanted = scheme == PrependScheme::kAlways ||
                             (scheme == PrependScheme::kFirst && piece.at_text_start);
      return is_wanted && !marked.starts_with(mark) ? mark + marked : marked;
    });
    if (splits) split_pieces(pieces, marks, SplitBehavior::kMergedWithNext, /*invert=*/false);
  };
}

PreTokenizer byte_level(bool add_prefix_space, bool use_regex) {
  return [add_prefix_space, use_regex](Pieces& pieces) {
    if (add_prefix_space) {
      rewrite_pieces(pieces, [](std::string_view text, const Pieces::Piece&) {
        return text.starts_with(' ') ? std::string(text) : " " + std::string(text);
      });
    }
    if (use_regex) split_pieces(pieces, find_gpt2_words, SplitBehavior::kIsolated, /*invert=*/false);
    rewrite_pieces(pieces,
                   [](std::string_view text, const Pieces::Piece&) { return encode_byte_alphabet(text); });
  };
}

PreTokenizer whitespace_split() { return split(find_characters(is_white_space), SplitBehavior::kRemoved); }

PreTokenizer words_and_symbols() {
  return split(find_runs(word_kind), SplitBehavior::kRemoved, /*invert=*/true);
}

PreTokenizer digits(bool individually) {
  return split(find_characters(is_numeric),
               individually ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizer punctuation(SplitBehavior behavior) {
  return split(find_characters(is_library_punctuation), behavior);
}

PreTokenizer bert_pre_tokenizer() {
  return sequence({whitespace_split(), punctuation(SplitBehavior::kIsolated)});
}

PreTokenizer unicode_scripts() { return split(find_script_starts, SplitBehavior::kRemoved, /*invert=*/true); }

PreTokenizer fixed_length(std::size_t num_characters) {
  const auto find = [num_characters](std::string_view text, const VisitMatch& visit) {
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;
      for (std::size_t i = 0; i < num_characters && end < text.size(); ++i)
        end += code_point_at(text, end).size_bytes;
      visit(begin, end);
      begin = end;
    }
  };
  return split(find, SplitBehavior::kIsolated);
}

PreTokenizer sequence(std::vector<PreTokenizer> steps) {
  return [steps = std::move(steps)](Pieces& pieces) {
    for (const PreTokenizer& step : steps) step(pieces);
  };
}

}  // namespace kvasir::text::hf
