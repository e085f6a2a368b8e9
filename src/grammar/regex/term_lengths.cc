// How long texts of a language are, and which counters a token cannot reach the end of (TermStore).
#include <algorithm>
#include <cstdint>
#include <vector>

#include "grammar/regex/term_store.h"
#include "grammar/regex/text_length.h"

namespace kvasir::grammar {

void TermStore::measure(const Parts& parts, Term& term) const {
  const auto part = [&](std::size_t i) -> const Term& { return terms_[parts.children[i]]; };
  term.longest_way = kMaxTextLength;
  switch (parts.kind) {
    case TermKind::kNone:
    case TermKind::kEmpty:
      term.longest_way = 0;
      return;
    case TermKind::kClass:
      term.shortest = 1;
      term.longest_way = 1;
      return;
    case TermKind::kWord: {
      const std::string_view text = std::string_view(word_bytes_).substr(word_begins_[parts.min], parts.max);
      const auto is_first_byte = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
      term.shortest = capped_length(static_cast<std::uint64_t>(std::ranges::count_if(text, is_first_byte)));
      term.longest_way = term.shortest;
      return;
    }
    case TermKind::kWords:
      return measure_words(term);
    case TermKind::kConcat:
      term.shortest = capped_length(std::uint64_t{part(0).shortest} + part(1).shortest);
      term.longest_way = std::max(capped_length(std::uint64_t{part(0).longest_way} + part(1).shortest), part(1).longest_way);
      return;
    case TermKind::kUnion:
      term.shortest = kMaxTextLength;
      term.longest_way = 0;
      for (std::size_t i = 0; i < parts.children.size(); ++i) {
        term.shortest = std::min(term.shortest, part(i).shortest);
        term.longest_way = std::max(term.longest_way, part(i).longest_way);
      }
      return;
    case TermKind::kRepeat:
      term.shortest = capped_length(std::uint64_t{parts.min} * part(0).shortest);
      term.longest_way =
          capped_length(part(0).longest_way + std::uint64_t{std::max(parts.min, 1u) - 1} * part(0).shortest);
      return;
    case TermKind::kIntersection:
      for (std::size_t i = 0; i < parts.children.size(); ++i) term.shortest = std::max(term.shortest, part(i).shortest);
      return;
    case TermKind::kComplement:
    case TermKind::kMultiples:
      return;
  }
}

// A language beside bounds of length that are further away than a token and a way to an end from there.
TermId TermStore::clamped_intersection(TermId term, std::uint32_t num_characters) {
  const TermId any_character = child(any_text());
  TermId language = kNothing;
  std::uint32_t max = kUnbounded;
  for (const TermId part : children(term)) {
    const bool is_length = terms_[part].kind == TermKind::kRepeat && terms_[part].min == 0 && child(part) == any_character;
    if (is_length) {
      max = std::min(max, terms_[part].max);
    } else if (language == kNothing) {
      language = part;
    } else {
      return term;
    }
  }
  if (language == kNothing || !terms_[language].is_surely_alive) return term;
  const std::uint64_t longest = std::uint64_t{num_characters} + terms_[language].longest_way;
  return longest <= max ? clamped(language, num_characters) : term;
}

TermId TermStore::clamped(TermId term, std::uint32_t num_characters) {
  if (!terms_[term].has_counter) return term;
  // Where languages are intersected, a counter may decide whether a text is left at all.
  const bool is_intersection = terms_[term].kind == TermKind::kIntersection;
  if (!terms_[term].is_surely_alive && !is_intersection) return term;
  const std::uint64_t key = std::uint64_t{term} << 32 | num_characters;
  if (const auto found = clamped_.find(key); found != clamped_.end()) return found->second;
  if (is_intersection) {
    const TermId result = clamped_intersection(term, num_characters);
    clamped_.emplace(key, result);
    return result;
  }
  std::vector<TermId> parts(children(term).begin(), children(term).end());
  for (TermId& part : parts) part = clamped(part, num_characters);
  const auto clamp = [&](std::uint32_t count) { return std::min(count, num_characters + 1); };
  TermId result = kNothing;
  switch (terms_[term].kind) {
    case TermKind::kConcat:
      result = concat(parts);
      break;
    case TermKind::kUnion:
      result = any_of(std::move(parts));
      break;
    case TermKind::kRepeat:
      result = repeat(parts[0], clamp(terms_[term].min),
                      terms_[term].max > num_characters ? kUnbounded : terms_[term].max);
      break;
    default:
      result = term;
      break;
  }
  clamped_.emplace(key, result);
  return result;
}

}  // namespace kvasir::grammar
