// Languages of several texts (TermStore).
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/code_point.h"
#include "grammar/regex/term_ranges.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

std::string_view TermStore::rest_of(const WordRange& range, std::uint32_t place) const {
  return std::string_view(word_lists_[range.list][place]).substr(range.depth);
}

bool TermStore::are_same(const WordRange& a, const WordRange& b) const {
  if (a.fingerprint != b.fingerprint || a.end - a.begin != b.end - b.begin) return false;
  for (std::uint32_t i = 0; i < a.end - a.begin; ++i) {
    if (rest_of(a, a.begin + i) != rest_of(b, b.begin + i)) return false;
  }
  return true;
}

// One of one character each is a class.
bool TermStore::are_characters(const WordRange& range) const {
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const std::string_view rest = rest_of(range, i);
    if (rest.empty() || code_point_at(rest, 0).size_bytes != rest.size()) return false;
  }
  return true;
}

TermId TermStore::words(WordRange range) {
  if (range.begin == range.end) return kNothing;
  if (range.end - range.begin == 1) return literal(rest_of(range, range.begin));
  if (are_characters(range)) {
    text::regex::CodePointSet set;
    for (std::uint32_t i = range.begin; i < range.end; ++i) {
      const char32_t c = code_point_at(rest_of(range, i), 0).value;
      set.add(text::regex::CodePointSet::of(c, c));
    }
    return char_class(set);
  }
  Fingerprint hash(range.end - range.begin);
  for (std::uint32_t i = range.begin; i < range.end; ++i) hash.add(rest_of(range, i));
  range.fingerprint = hash.value();
  const auto is_same = [&](std::uint32_t known) { return are_same(word_ranges_[known], range); };
  std::uint32_t place = word_range_places_.find(range.fingerprint.first, is_same);
  if (place == IdTable::kNone) {
    place = static_cast<std::uint32_t>(word_ranges_.size());
    word_ranges_.push_back(range);
    word_range_places_.insert(range.fingerprint.first, place);
  }
  return intern({.kind = TermKind::kWords, .min = place});
}

TermId TermStore::literals(std::vector<std::string_view> texts) {
  std::ranges::sort(texts);
  texts.erase(std::ranges::unique(texts).begin(), texts.end());
  if (texts.empty()) return kNothing;
  if (texts.size() == 1) return literal(texts[0]);
  const auto list = static_cast<std::uint32_t>(word_lists_.size());
  const auto size = static_cast<std::uint32_t>(texts.size());
  for (const std::string_view text : texts) num_word_bytes_ += sizeof(std::string) + text.size();
  word_lists_.emplace_back(texts.begin(), texts.end());
  return words({.list = list, .begin = 0, .end = size});
}

TermRanges TermStore::words_behind(TermId term) {
  const WordRange all = word_ranges_[terms_[term].min];
  count_work(all.end - all.begin);
  TermRanges ranges;
  std::uint32_t begin = all.begin;
  while (begin < all.end && rest_of(all, begin).empty()) ++begin;
  while (begin < all.end) {
    const auto [c, size_bytes] = code_point_at(rest_of(all, begin), 0);
    const std::string_view head = rest_of(all, begin).substr(0, size_bytes);
    std::uint32_t end = begin + 1;
    while (end < all.end && rest_of(all, end).starts_with(head)) ++end;
    const auto depth = static_cast<std::uint32_t>(all.depth + size_bytes);
    append_range(ranges, {c, c, words({.list = all.list, .begin = begin, .end = end, .depth = depth})});
    begin = end;
  }
  return ranges;
}

TermId TermStore::nonempty_words(TermId term) {
  WordRange range = word_ranges_[terms_[term].min];
  ++range.begin;  // the empty text comes first
  return words(range);
}

void TermStore::measure_words(Term& term) const {
  const WordRange& range = word_ranges_[term.min];
  term.is_nullable = rest_of(range, range.begin).empty();
  std::size_t shortest = SIZE_MAX;
  std::size_t longest = 0;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const auto is_first_byte = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
    const auto length = static_cast<std::size_t>(std::ranges::count_if(rest_of(range, i), is_first_byte));
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
  }
  term.shortest = static_cast<std::uint32_t>(shortest);
  term.longest_way = static_cast<std::uint32_t>(longest);
}

}  // namespace kvasir::grammar
