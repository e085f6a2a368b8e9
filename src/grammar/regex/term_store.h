// Regular languages, each made once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/regex/derived_terms.h"
#include "grammar/regex/fingerprint.h"
#include "grammar/regex/id_table.h"
#include "grammar/regex/term.h"
#include "text/regex/code_point_set.h"

namespace kvasir::grammar {

// Makes languages. A language is made once: the same parts give the same number. Counters are never unrolled.
//
// A store holds at most `max_terms`, and no 257 parts in a row that may be empty. Searches for texts have a bound
// of work, too. Beyond them it is exhausted for good: every result is kNothing, and whoever asked has to look at
// is_exhausted() before the result is used.
//
// Thread safety: none.
class TermStore {
 public:
  explicit TermStore(std::size_t max_terms = 30'000);

  TermId char_class(const text::regex::CodePointSet& set);
  // Requires: well-formed UTF-8.
  TermId literal(std::string_view text);
  // The same language as one term, for texts that nobody intersects: it is taken apart only where somebody walks.
  TermId word(std::string_view text);
  // Any of some texts, as one term that is taken apart where somebody walks. Requires: well-formed UTF-8.
  TermId literals(std::vector<std::string_view> texts);
  TermId any_text();  // of any characters

  TermId concat(TermId first, TermId second);
  TermId concat(std::span<const TermId> parts);
  TermId any_of(std::vector<TermId> terms);
  TermId all_of(std::vector<TermId> terms);
  TermId complement(TermId term);
  // Requires: min <= max.
  TermId repeat(TermId term, std::uint32_t min, std::uint32_t max);
  // Decimals, with a sign perhaps, that are a multiple of modulus / 10^num_fraction; leading zeros are taken.
  // Requires: 0 < modulus <= 100,000, num_fraction <= 15.
  TermId multiples(std::uint32_t modulus, std::uint32_t num_fraction);
  TermId optional(TermId term) { return any_of({kEmptyText, term}); }
  TermId without(TermId term, TermId excluded) { return all_of({term, complement(excluded)}); }
  // The texts of the language but the empty one.
  TermId without_empty_text(TermId term);

  bool is_nullable(TermId term) const { return terms_[term].is_nullable; }
  TermKind kind(TermId term) const { return terms_[term].kind; }

  // Parts of a term, for those who take it apart.
  std::span<const TermId> children(TermId term) const {
    return std::span(children_).subspan(terms_[term].first_child, terms_[term].num_children);
  }
  TermId child(TermId term) const { return children_[terms_[term].first_child]; }
  // Of kMultiples, what the next character leaves: kNothing unless it is a digit, the point or a first minus.
  TermId multiples_behind(TermId term, char32_t code_point);
  std::string_view word_text(TermId term) const {  // of kWord
    return std::string_view(word_bytes_).substr(word_begins_[terms_[term].min], terms_[term].max);
  }
  TermRanges words_behind(TermId term);  // of kWords, by first character
  // A kWord character by character.
  TermId spelled(TermId term) { return literal(word_text(term)); }
  std::uint32_t min(TermId term) const { return terms_[term].min; }  // of kRepeat
  std::uint32_t max(TermId term) const { return terms_[term].max; }
  std::uint32_t num_words(TermId term) const {  // of kWords
    return word_ranges_[terms_[term].min].end - word_ranges_[terms_[term].min].begin;
  }
  const text::regex::CodePointSet& code_points(TermId term) const { return classes_[terms_[term].min]; }
  // No intersection or complement is inside, so there is a text, and behind each character that may begin one, too.
  bool is_surely_alive(TermId term) const { return terms_[term].is_surely_alive; }

  // No text has fewer characters.
  std::uint32_t shortest(TermId term) const { return terms_[term].shortest; }
  // There surely is a text; else one has to search.
  bool has_text(TermId term) const {
    return terms_[term].is_nullable || terms_[term].is_measured || terms_[term].is_surely_alive;
  }

  // Whether languages have a text in common, as far as their lengths tell.
  using Life = DerivedTerms::Life;
  Life life_of_all(std::span<const TermId> terms) const;

  // A language with the same texts, and the same starts of texts, as far as `num_characters` tell; there are few such
  // languages, because a counter's excess is forgotten. Languages with intersections and complements stay as they are,
  // but for one that is intersected with a length that it cannot miss.
  TermId clamped(TermId term, std::uint32_t num_characters);

  DerivedTerms& derived() { return derived_; }

  bool is_exhausted() const { return is_exhausted_; }
  // A search for a text took so much work.
  void count_search(std::size_t work) {
    search_work_ += work;
    if (search_work_ > kMaxSearchWork) is_exhausted_ = true;
  }
  // Parts of languages that are looked at count while a guide is compiled: a store of too many is exhausted, too.
  void count_work(std::size_t num_parts) {
    work_ += num_parts;
    if (work_ > max_work_) is_exhausted_ = true;
  }
  std::size_t work() const { return work_; }
  // From now on only terms count, so that no answer depends on what others asked for.
  void end_compile() {
    max_work_ = std::numeric_limits<std::size_t>::max();
    num_compiled_terms_ = terms_.size();
  }
  // A store with the terms of end_compile(), under the same numbers, and no others. Requires: end_compile() was called.
  std::unique_ptr<TermStore> restarted() const;
  std::size_t num_terms() const { return terms_.size(); }
  std::size_t size_bytes() const;
  // A number for the language that is the same in every store of this process, but for 128-bit collisions.
  std::pair<std::uint64_t, std::uint64_t> fingerprint(TermId term) const { return terms_[term].fingerprint; }

 private:
  struct Term {
    TermKind kind = TermKind::kNone;
    bool is_nullable = false;
    bool is_surely_alive = false;
    bool has_counter = false;      // a kRepeat that counts is inside
    bool is_length = false;        // any text of min to max characters, and min and max say so
    bool is_measured = false;      // there are texts of `shortest` characters, of longest_run and of each number between
    std::uint16_t num_open = 0;    // kConcat: parts from the first on that may be empty
    std::uint32_t min = 0;         // kRepeat; kClass: place in classes_; kWord: place in word_begins_; kWords: in word_ranges_
    std::uint32_t max = 0;         // kRepeat; kWord: bytes
    std::uint32_t first_child = 0;
    std::uint32_t num_children = 0;
    // Characters of a shortest text (or fewer, where there is an intersection or a complement), and of the longest way from the start of a text to a nearest end; saturated.
    std::uint32_t shortest = 0;
    std::uint32_t longest_way = 0;
    std::uint32_t longest_run = 0;  // is_measured alone says what it is
    std::pair<std::uint64_t, std::uint64_t> fingerprint = {};
  };
  // A place in a decimal whose digits are read from the left.
  struct Multiples {
    std::uint32_t modulus = 1;
    std::uint32_t remainder = 0;
    std::uint32_t num_fraction = 0;  // digits behind the point that still count
    bool is_behind_point = false;
    bool is_start = false;
  };
  // Texts of word_lists_[list] that begin alike, from there on. Ascending, and no two alike.
  struct WordRange {
    std::uint32_t list = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t depth = 0;  // bytes that are behind
    Fingerprint::Value fingerprint = {};
  };
  struct Parts {  // what a term is found by
    TermKind kind = TermKind::kNone;
    std::uint32_t min = 0;
    std::uint32_t max = 0;
    std::span<const TermId> children = {};
  };

  TermId character(char32_t code_point);
  TermId intern_multiples(const Multiples& place);
  static Multiples multiples_of(const Term& term);
  TermId intern(const Parts& parts);
  bool has_parts(TermId term, const Parts& parts) const;
  static constexpr std::size_t kMaxSearchWork = 1'500'000;
  static constexpr std::size_t kWorkOfTerm = 60;  // that a store has room for
  static constexpr std::uint16_t kMaxOpen = 256;  // each step looks at all of them, and at all that follow each
  static std::uint64_t hash_of(const Parts& parts);
  Term described(const Parts& parts) const;
  std::pair<std::uint64_t, std::uint64_t> fingerprint_of(const Parts& parts) const;
  void measure(const Parts& parts, Term& term) const;
  void measure_run(const Parts& parts, Term& term) const;
  void measure_run_of_union(const Parts& parts, Term& term) const;
  void measure_run_of_intersection(const Parts& parts, Term& term) const;
  bool is_too_short(std::span<const TermId> terms) const;
  std::uint32_t common_run(std::span<const TermId> terms) const;
  bool is_any_length(const Parts& parts) const;
  TermId clamped_intersection(TermId term, std::uint32_t num_characters);
  std::string_view rest_of(const WordRange& range, std::uint32_t place) const;
  bool are_same(const WordRange& a, const WordRange& b) const;
  bool are_characters(const WordRange& range) const;
  TermId words(WordRange range);
  TermId nonempty_words(TermId term);
  void measure_words(Term& term) const;
  TermId make_nonempty(TermId term);
  void flatten(TermKind kind, std::vector<TermId>& terms);
  void join_classes(TermKind kind, std::vector<TermId>& terms);
  void join_tails(std::vector<TermId>& terms);
  std::optional<TermId> joined_repeat(TermId term, std::uint32_t min, std::uint32_t max);

  std::size_t max_terms_;
  std::size_t max_work_;
  std::size_t work_ = 0;
  std::size_t search_work_ = 0;
  std::size_t num_compiled_terms_ = 0;
  TermId any_text_ = kNothing;  // until it is asked for
  bool is_exhausted_ = false;
  std::vector<Term> terms_;
  std::vector<TermId> children_;
  std::vector<text::regex::CodePointSet> classes_;
  std::size_t num_class_ranges_ = 0;
  std::array<TermId, 128> ascii_ = {};  // classes of one character; kNothing: not made yet
  std::string word_bytes_;
  std::vector<std::size_t> word_begins_;
  IdTable word_places_;
  std::vector<std::vector<std::string>> word_lists_;
  std::size_t num_word_bytes_ = 0;  // of them
  std::vector<WordRange> word_ranges_;
  IdTable word_range_places_;
  IdTable found_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> class_places_;
  DerivedTerms derived_;
  std::unordered_map<TermId, TermId> nonempty_;          // without_empty_text
  std::unordered_map<std::uint64_t, TermId> clamped_;  // by term << 32 | characters
};

}  // namespace kvasir::grammar
