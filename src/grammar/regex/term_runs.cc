// Numbers of characters that texts of a language surely have (TermStore::has_text).
//
// The texts of most languages have every number of characters from the shortest on. Where such a language is bounded by
// a length, the two numbers say whether a text is left, and nobody has to search through what the text may hold.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "grammar/regex/term_store.h"
#include "grammar/regex/text_length.h"

namespace kvasir::grammar {

bool TermStore::is_any_length(const Parts& parts) const {
  const auto is_any_character = [&](std::uint32_t place) {
    const text::CodePointRanges& ranges = classes_[place].ranges();
    return ranges.size() == 2 && ranges[0].first == 0 && ranges[1].second == kLastCodePoint &&
           ranges[0].second + 1 == kFirstSurrogate && ranges[1].first == kLastSurrogate + 1;
  };
  if (parts.kind == TermKind::kClass) return is_any_character(parts.min);
  if (parts.kind != TermKind::kRepeat) return false;
  const Term& child = terms_[parts.children[0]];
  return child.kind == TermKind::kClass && child.is_length;
}

void TermStore::measure_run(const Parts& parts, Term& term) const {
  const auto part = [&](std::size_t i) -> const Term& { return terms_[parts.children[i]]; };
  switch (parts.kind) {
    case TermKind::kNone:
    case TermKind::kComplement:
    case TermKind::kMultiples:
      return;
    case TermKind::kUnion:
      return measure_run_of_union(parts, term);
    case TermKind::kIntersection:
      return measure_run_of_intersection(parts, term);
    case TermKind::kEmpty:
    case TermKind::kClass:
    case TermKind::kWord:
    case TermKind::kWords:
      term.longest_run = term.shortest;
      break;
    case TermKind::kConcat:
      if (!part(0).is_measured || !part(1).is_measured) return;
      term.longest_run = capped_length(std::uint64_t{part(0).longest_run} + part(1).longest_run);
      break;
    case TermKind::kRepeat: {
      const Term& child = part(0);
      if (!child.is_measured) return;
      const std::uint64_t run = std::uint64_t{parts.min} * child.longest_run;
      // One time more begins where `min` times end, or before: then the longer ones hang together, too.
      const bool goes_on = (std::uint64_t{parts.min} + 1) * child.shortest <= run + 1;
      term.longest_run = capped_length(goes_on ? std::uint64_t{parts.max} * child.longest_run : run);
      break;
    }
  }
  term.is_measured = term.shortest < kMaxTextLength;
}

// The run that holds the shortest text grows while a part's run begins in it or right behind it.
void TermStore::measure_run_of_union(const Parts& parts, Term& term) const {
  std::uint32_t run = term.shortest;
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const TermId child : parts.children) {
      const Term& part = terms_[child];
      if (!part.is_measured) return;
      if (part.shortest > run + 1 || part.longest_run <= run) continue;
      run = part.longest_run;
      has_grown = true;
    }
  }
  term.longest_run = run;
  term.is_measured = term.shortest < kMaxTextLength;
}

// The longest of the lengths that are surely common, from the longest `shortest` on; 0: they may have none.
std::uint32_t TermStore::common_run(std::span<const TermId> terms) const {
  std::uint32_t run = kMaxTextLength;
  std::size_t num_languages = 0;
  for (const TermId id : terms) {
    const Term& term = terms_[id];
    if (!term.is_measured || (!term.is_length && ++num_languages > 1)) return 0;
    run = std::min(run, term.longest_run);
  }
  return run;
}

// One language beside lengths.
void TermStore::measure_run_of_intersection(const Parts& parts, Term& term) const {
  term.longest_run = common_run(parts.children);
  term.is_measured = term.shortest > 0 && term.shortest <= term.longest_run && term.shortest < kMaxTextLength;
}

// Some part's texts are all longer than another's.
bool TermStore::is_too_short(std::span<const TermId> terms) const {
  std::uint32_t shortest = 0;
  std::uint32_t longest = kUnbounded;
  for (const TermId id : terms) {
    const Term& term = terms_[id];
    shortest = std::max(shortest, term.shortest);
    if (id == kEmptyText) longest = 0;
    if (term.is_length) longest = std::min(longest, term.kind == TermKind::kClass ? 1 : term.max);
  }
  return shortest > longest;
}

TermStore::Life TermStore::life_of_all(std::span<const TermId> terms) const {
  if (std::ranges::find(terms, kNothing) != terms.end() || is_too_short(terms)) return Life::kDead;
  if (std::ranges::all_of(terms, [this](TermId term) { return is_nullable(term); })) return Life::kAlive;
  if (terms.size() == 1) return has_text(terms[0]) ? Life::kAlive : Life::kUnknown;
  std::uint32_t shortest = 0;
  for (const TermId term : terms) shortest = std::max(shortest, terms_[term].shortest);
  return shortest > 0 && shortest <= common_run(terms) ? Life::kAlive : Life::kUnknown;
}

}  // namespace kvasir::grammar
