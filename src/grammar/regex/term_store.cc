#include "grammar/regex/term_store.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/code_point.h"
#include "grammar/regex/fingerprint.h"

namespace kvasir::grammar {
namespace {

using text::regex::CodePointSet;

std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  if (a == 0 || b == 0) return 0;
  const std::uint64_t exact = std::uint64_t{a} * b;
  return a == kUnbounded || b == kUnbounded || exact >= kUnbounded ? kUnbounded
                                                                   : static_cast<std::uint32_t>(exact);
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    characters += code_point;
    at += size_bytes;
  }
  return characters;
}

}  // namespace

TermStore::TermStore(std::size_t max_terms) : max_terms_(max_terms), max_work_(kWorkOfTerm * max_terms) {
  intern({.kind = TermKind::kNone});
  intern({.kind = TermKind::kEmpty});
}

std::uint64_t TermStore::hash_of(const Parts& parts) {
  Fingerprint hash(static_cast<std::uint64_t>(parts.kind));
  hash.add(parts.min);
  hash.add(parts.max);
  for (const TermId child : parts.children) hash.add(child);
  return hash.value().first;
}

bool TermStore::has_parts(TermId id, const Parts& parts) const {
  const Term& term = terms_[id];
  return term.kind == parts.kind && term.min == parts.min && term.max == parts.max &&
         std::ranges::equal(children(id), parts.children);
}

std::pair<std::uint64_t, std::uint64_t> TermStore::fingerprint_of(const Parts& parts) const {
  Fingerprint hash(static_cast<std::uint64_t>(parts.kind));
  if (parts.kind == TermKind::kClass) {
    for (const auto& [first, last] : classes_[parts.min].ranges()) hash.add(std::uint64_t{first} << 32 | last);
    return hash.value();
  }
  if (parts.kind == TermKind::kWord) {
    hash.add(std::string_view(word_bytes_).substr(word_begins_[parts.min], parts.max));
    return hash.value();
  }
  if (parts.kind == TermKind::kWords) {
    hash.add(word_ranges_[parts.min].fingerprint.first);
    hash.add(word_ranges_[parts.min].fingerprint.second);
    return hash.value();
  }
  hash.add(std::uint64_t{parts.min} << 32 | parts.max);
  for (const TermId child : parts.children) {
    hash.add(terms_[child].fingerprint.first);
    hash.add(terms_[child].fingerprint.second);
  }
  return hash.value();
}

TermStore::Term TermStore::described(const Parts& parts) const {
  Term term = {.kind = parts.kind, .min = parts.min, .max = parts.max, .fingerprint = fingerprint_of(parts)};
  const auto is_nullable_child = [&](TermId child) { return terms_[child].is_nullable; };
  const auto is_sure = [&](TermId child) { return terms_[child].is_surely_alive; };
  switch (parts.kind) {
    case TermKind::kNone:
    case TermKind::kClass:
    case TermKind::kWord:
    case TermKind::kWords:  // measure()
      break;
    case TermKind::kEmpty:
      term.is_nullable = true;
      break;
    case TermKind::kConcat:
    case TermKind::kIntersection:
      term.is_nullable = std::ranges::all_of(parts.children, is_nullable_child);
      break;
    case TermKind::kUnion:
      term.is_nullable = std::ranges::any_of(parts.children, is_nullable_child);
      break;
    case TermKind::kComplement:
      term.is_nullable = !is_nullable_child(parts.children[0]);
      break;
    case TermKind::kRepeat:
      term.is_nullable = parts.min == 0;
      break;
    case TermKind::kMultiples: {
      const Multiples place = multiples_of(term);
      std::uint64_t remainder = place.remainder;
      for (std::uint32_t i = 0; i < place.num_fraction; ++i) remainder = remainder * 10 % place.modulus;
      term.is_nullable = remainder == 0 && !place.is_start;
      break;
    }
  }
  term.is_surely_alive = parts.kind != TermKind::kNone && parts.kind != TermKind::kIntersection &&
                         parts.kind != TermKind::kComplement && parts.kind != TermKind::kMultiples && std::ranges::all_of(parts.children, is_sure);
  term.has_counter = (parts.kind == TermKind::kRepeat &&
                      (parts.min > 1 || (parts.max > 1 && parts.max != kUnbounded))) ||
                     std::ranges::any_of(parts.children, [&](TermId child) { return terms_[child].has_counter; });
  if (parts.kind == TermKind::kConcat && is_nullable_child(parts.children[0])) {
    term.num_open = static_cast<std::uint16_t>(terms_[parts.children[1]].num_open + 1);
  }
  term.num_children = static_cast<std::uint32_t>(parts.children.size());
  measure(parts, term);
  term.is_length = is_any_length(parts);
  measure_run(parts, term);
  return term;
}

TermId TermStore::intern(const Parts& parts) {
  const std::uint64_t hash = hash_of(parts);
  const TermId found = found_.find(hash, [&](TermId id) { return has_parts(id, parts); });
  if (found != IdTable::kNone) return found;
  if (terms_.size() >= max_terms_ || is_exhausted_) {
    is_exhausted_ = true;
    return kNothing;
  }
  Term term = described(parts);
  if (term.num_open > kMaxOpen) {
    is_exhausted_ = true;
    return kNothing;
  }
  term.first_child = static_cast<std::uint32_t>(children_.size());
  const std::vector<TermId> copied(parts.children.begin(), parts.children.end());  // perhaps of children_
  children_.insert(children_.end(), copied.begin(), copied.end());
  const auto id = static_cast<TermId>(terms_.size());
  terms_.push_back(term);
  found_.insert(hash, id);
  return id;
}

TermId TermStore::char_class(const CodePointSet& set) {
  const CodePointSet scalars = CodePointSet({{0, kFirstSurrogate - 1}, {kLastSurrogate + 1, kLastCodePoint}});
  CodePointSet wanted = set.intersected(scalars);
  if (wanted.empty()) return kNothing;
  Fingerprint hash(0);
  for (const auto& [first, last] : wanted.ranges()) hash.add(std::uint64_t{first} << 32 | last);
  const auto [begin, end] = class_places_.equal_range(hash.value().first);
  for (auto it = begin; it != end; ++it) {
    if (classes_[it->second] == wanted) return intern({.kind = TermKind::kClass, .min = it->second});
  }
  const auto place = static_cast<std::uint32_t>(classes_.size());
  num_class_ranges_ += wanted.ranges().size();
  classes_.push_back(std::move(wanted));
  class_places_.emplace(hash.value().first, place);
  return intern({.kind = TermKind::kClass, .min = place});
}

TermId TermStore::character(char32_t code_point) {
  if (code_point >= ascii_.size()) return char_class(CodePointSet::of(code_point, code_point));
  TermId& known = ascii_[code_point];
  if (known == kNothing) known = char_class(CodePointSet::of(code_point, code_point));
  return known;
}

TermId TermStore::literal(std::string_view text) {
  const std::u32string characters = characters_of(text);
  TermId term = kEmptyText;
  for (auto it = characters.rbegin(); it != characters.rend(); ++it) {
    term = concat(character(*it), term);
  }
  return term;
}

TermId TermStore::word(std::string_view text) {
  if (text.empty()) return kEmptyText;
  if (code_point_at(text, 0).size_bytes == text.size()) return literal(text);
  Fingerprint hash(0);
  hash.add(text);
  const auto size = static_cast<std::uint32_t>(text.size());
  std::uint32_t place = word_places_.find(hash.value().first, [&](std::uint32_t known) {
    return std::string_view(word_bytes_).substr(word_begins_[known], size) == text;
  });
  if (place == IdTable::kNone) {
    place = static_cast<std::uint32_t>(word_begins_.size());
    word_begins_.push_back(word_bytes_.size());
    word_bytes_ += text;
    word_places_.insert(hash.value().first, place);
  }
  return intern({.kind = TermKind::kWord, .min = place, .max = size});
}

std::unique_ptr<TermStore> TermStore::restarted() const {
  auto made = std::make_unique<TermStore>(max_terms_);
  made->word_lists_ = word_lists_;
  made->num_word_bytes_ = num_word_bytes_;
  for (TermId id = kEmptyText + 1; id < num_compiled_terms_; ++id) {  // made in the same order, they have the same numbers
    const Term& term = terms_[id];
    if (term.kind == TermKind::kClass) {
      made->char_class(classes_[term.min]);
    } else if (term.kind == TermKind::kWord) {
      made->word(word_text(id));
    } else if (term.kind == TermKind::kWords) {
      made->words(word_ranges_[term.min]);
    } else {
      made->intern({.kind = term.kind, .min = term.min, .max = term.max, .children = children(id)});
    }
  }
  CHECK(made->num_terms() == num_compiled_terms_);
  made->any_text();
  return made;
}

std::size_t TermStore::size_bytes() const {
  constexpr std::size_t kMapEntryBytes = 48;
  return terms_.size() * sizeof(Term) + children_.size() * sizeof(TermId) +
         classes_.size() * (sizeof(CodePointSet) + kMapEntryBytes) + num_class_ranges_ * sizeof(std::pair<char32_t, char32_t>) +
         word_bytes_.size() + num_word_bytes_ + word_ranges_.size() * sizeof(WordRange) + word_range_places_.size_bytes() + word_begins_.size() * sizeof(std::size_t) + word_places_.size_bytes() +
         found_.size_bytes() + (clamped_.size() + nonempty_.size()) * kMapEntryBytes;
}

TermId TermStore::any_text() {
  if (any_text_ == kNothing) any_text_ = repeat(char_class(CodePointSet::of(0, kLastCodePoint)), 0, kUnbounded);
  return any_text_;
}

TermId TermStore::concat(TermId first, TermId second) {
  if (first == kNothing || second == kNothing) return kNothing;
  if (first == kEmptyText) return second;
  if (second == kEmptyText) return first;
  if (terms_[first].kind == TermKind::kConcat) {
    const std::array<TermId, 2> parts = {children(first)[0], children(first)[1]};
    return concat(parts[0], concat(parts[1], second));
  }
  const std::array<TermId, 2> parts = {first, second};
  return intern({.kind = TermKind::kConcat, .children = parts});
}

TermId TermStore::concat(std::span<const TermId> parts) {
  TermId term = kEmptyText;
  for (auto it = parts.rbegin(); it != parts.rend(); ++it) term = concat(*it, term);
  return term;
}

void TermStore::flatten(TermKind kind, std::vector<TermId>& terms) {
  std::vector<TermId> flat;
  flat.reserve(terms.size());
  for (const TermId term : terms) {
    if (terms_[term].kind == kind) {
      flat.insert(flat.end(), children(term).begin(), children(term).end());
    } else {
      flat.push_back(term);
    }
  }
  count_work(flat.size());
  std::ranges::sort(flat);
  flat.erase(std::ranges::unique(flat).begin(), flat.end());
  terms = std::move(flat);
}

// Several classes become one.
void TermStore::join_classes(TermKind kind, std::vector<TermId>& terms) {
  const auto is_class = [&](TermId term) { return terms_[term].kind == TermKind::kClass; };
  if (std::ranges::count_if(terms, is_class) < 2) return;
  std::optional<CodePointSet> joined;
  for (const TermId term : terms) {
    if (!is_class(term)) continue;
    const CodePointSet& set = classes_[terms_[term].min];
    if (!joined) {
      joined = set;
    } else if (kind == TermKind::kUnion) {
      joined->add(set);
    } else {
      joined = joined->intersected(set);
    }
  }
  std::erase_if(terms, is_class);
  terms.push_back(char_class(*joined));
}

// Of a union: xa|ya becomes (x|y)a, which keeps the number of derivatives small.
void TermStore::join_tails(std::vector<TermId>& terms) {
  std::vector<std::pair<TermId, TermId>> concats;  // tail, head
  for (const TermId term : terms) {
    if (terms_[term].kind == TermKind::kConcat) concats.emplace_back(children(term)[1], children(term)[0]);
  }
  std::ranges::sort(concats);
  const auto has_same_tail = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::ranges::adjacent_find(concats, has_same_tail) == concats.end()) return;
  std::erase_if(terms, [&](TermId term) { return terms_[term].kind == TermKind::kConcat; });
  for (std::size_t begin = 0; begin < concats.size();) {
    std::vector<TermId> heads;
    std::size_t end = begin;
    for (; end < concats.size() && has_same_tail(concats[begin], concats[end]); ++end) {
      heads.push_back(concats[end].second);
    }
    terms.push_back(concat(any_of(std::move(heads)), concats[begin].first));
    begin = end;
  }
}

TermId TermStore::any_of(std::vector<TermId> terms) {
  flatten(TermKind::kUnion, terms);
  std::erase(terms, kNothing);
  join_classes(TermKind::kUnion, terms);
  join_tails(terms);
  flatten(TermKind::kUnion, terms);
  const bool has_nullable =
      std::ranges::any_of(terms, [&](TermId term) { return term != kEmptyText && is_nullable(term); });
  if (has_nullable) std::erase(terms, kEmptyText);
  if (std::ranges::find(terms, any_text()) != terms.end()) return any_text();
  if (terms.empty()) return kNothing;
  if (terms.size() == 1) return terms[0];
  return intern({.kind = TermKind::kUnion, .children = terms});
}

TermId TermStore::all_of(std::vector<TermId> terms) {
  flatten(TermKind::kIntersection, terms);
  join_classes(TermKind::kIntersection, terms);
  std::erase(terms, any_text());
  std::ranges::sort(terms);
  if (std::ranges::find(terms, kNothing) != terms.end()) return kNothing;
  if (terms.empty()) return any_text();
  if (terms.size() == 1) return terms[0];
  if (std::ranges::find(terms, kEmptyText) != terms.end()) {
    const bool has_empty_text = std::ranges::all_of(terms, [&](TermId term) { return is_nullable(term); });
    return has_empty_text ? kEmptyText : kNothing;
  }
  for (const TermId term : terms) {
    if (terms_[term].kind == TermKind::kComplement && std::ranges::binary_search(terms, child(term))) {
      return kNothing;
    }
  }
  if (life_of_all(terms) == Life::kDead) return kNothing;
  return intern({.kind = TermKind::kIntersection, .children = terms});
}

TermId TermStore::complement(TermId term) {
  if (is_exhausted_) return kNothing;
  if (term == kNothing) return any_text();
  if (term == any_text()) return kNothing;
  if (terms_[term].kind == TermKind::kComplement) return child(term);
  return intern({.kind = TermKind::kComplement, .children = std::span(&term, 1)});
}

// A repetition of a repetition, where it is one.
std::optional<TermId> TermStore::joined_repeat(TermId term, std::uint32_t min, std::uint32_t max) {
  const Term& inner = terms_[term];
  if (inner.kind != TermKind::kRepeat) return std::nullopt;
  if (inner.min > 1 && min != max) return std::nullopt;  // there may be gaps between the counts
  return repeat(child(term), inner.min == 0 ? 0 : product(inner.min, min), product(inner.max, max));
}

TermId TermStore::repeat(TermId term, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || term == kEmptyText) return kEmptyText;
  if (term == kNothing) return min == 0 ? kEmptyText : kNothing;
  if (is_nullable(term)) min = 0;
  if (min == 1 && max == 1) return term;
  if (const std::optional<TermId> joined = joined_repeat(term, min, max)) return *joined;
  if (terms_[term].kind == TermKind::kUnion && children(term)[0] == kEmptyText) {
    return repeat(any_of({children(term).begin() + 1, children(term).end()}), 0, max);
  }
  if (min == 0 && max == 1) return optional(term);
  return intern({.kind = TermKind::kRepeat, .min = min, .max = max, .children = std::span(&term, 1)});
}

TermId TermStore::intern_multiples(const Multiples& place) {
  const std::uint32_t marks = place.num_fraction | (place.is_behind_point ? 16u : 0u) | (place.is_start ? 32u : 0u);
  return intern({.kind = TermKind::kMultiples, .min = place.modulus, .max = place.remainder << 6 | marks});
}

TermStore::Multiples TermStore::multiples_of(const Term& term) {
  return {.modulus = term.min,
          .remainder = term.max >> 6,
          .num_fraction = term.max & 15,
          .is_behind_point = (term.max & 16) != 0,
          .is_start = (term.max & 32) != 0};
}

TermId TermStore::multiples(std::uint32_t modulus, std::uint32_t num_fraction) {
  return intern_multiples({.modulus = modulus, .num_fraction = num_fraction, .is_start = true});
}

TermId TermStore::multiples_behind(TermId term, char32_t code_point) {
  Multiples place = multiples_of(terms_[term]);
  if (code_point == '-') return place.is_start ? term : kNothing;
  place.is_start = false;
  if (code_point == '.') {
    if (place.is_behind_point) return kNothing;
    place.is_behind_point = true;
    return intern_multiples(place);
  }
  if (code_point < '0' || code_point > '9') return kNothing;
  if (place.is_behind_point && place.num_fraction == 0) {  // no more than zeros
    return code_point == '0' ? intern_multiples(place) : kNothing;
  }
  if (place.is_behind_point) --place.num_fraction;
  place.remainder = static_cast<std::uint32_t>((std::uint64_t{place.remainder} * 10 + (code_point - '0')) % place.modulus);
  return intern_multiples(place);
}

TermId TermStore::without_empty_text(TermId term) {
  if (!is_nullable(term)) return term;
  if (const auto found = nonempty_.find(term); found != nonempty_.end()) return found->second;
  const TermId result = make_nonempty(term);
  nonempty_.emplace(term, result);
  return result;
}

TermId TermStore::make_nonempty(TermId term) {
  std::vector<TermId> parts(children(term).begin(), children(term).end());
  switch (terms_[term].kind) {
    case TermKind::kUnion:
      for (TermId& part : parts) part = without_empty_text(part);
      return any_of(std::move(parts));
    case TermKind::kIntersection:
      parts[0] = without_empty_text(parts[0]);
      return all_of(std::move(parts));
    case TermKind::kConcat:
      return any_of({concat(without_empty_text(parts[0]), parts[1]), without_empty_text(parts[1])});
    case TermKind::kRepeat: {
      const std::uint32_t max = terms_[term].max;
      const TermId first = without_empty_text(parts[0]);
      return concat(first, repeat(parts[0], 0, max == kUnbounded ? max : max - 1));
    }
    case TermKind::kComplement:
      return all_of({term, complement(kEmptyText)});
    case TermKind::kWords:
      return nonempty_words(term);
    default:
      return kNothing;  // the empty text alone
  }
}

}  // namespace kvasir::grammar
