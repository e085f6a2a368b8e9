#include "text/regex/code_point_set.h"

#include <algorithm>
#include <utility>

namespace kvasir::text::regex {
namespace {

constexpr char32_t kLastCodePoint = 0x10FFFF;

void join_ranges(CodePointRanges& ranges) {
  if (!std::ranges::is_sorted(ranges)) std::ranges::sort(ranges);
  CodePointRanges joined;
  for (const auto& [first, last] : ranges) {
    if (!joined.empty() && first <= joined.back().second + 1) {
      joined.back().second = std::max(joined.back().second, last);
    } else {
      joined.emplace_back(first, last);
    }
  }
  ranges = std::move(joined);
}

}  // namespace

CodePointSet::CodePointSet(CodePointRanges ranges) : ranges_(std::move(ranges)) { join_ranges(ranges_); }

bool CodePointSet::contains(char32_t code_point) const {
  const auto range = std::ranges::lower_bound(ranges_, code_point, {},
                                              &std::pair<char32_t, char32_t>::second);
  return range != ranges_.end() && code_point >= range->first;
}

void CodePointSet::add(const CodePointSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  join_ranges(ranges_);
}

CodePointSet CodePointSet::negated() const {
  CodePointSet result;
  char32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) result.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCodePoint) result.ranges_.emplace_back(next, kLastCodePoint);
  return result;
}

CodePointSet CodePointSet::intersected(const CodePointSet& other) const {
  CodePointSet both;
  auto mine = ranges_.begin(), theirs = other.ranges_.begin();
  while (mine != ranges_.end() && theirs != other.ranges_.end()) {
    const char32_t first = std::max(mine->first, theirs->first), last = std::min(mine->second, theirs->second);
    if (first <= last) both.ranges_.emplace_back(first, last);
    mine->second < theirs->second ? ++mine : ++theirs;
  }
  return both;
}

CodePointSet CodePointSet::in_any_case() const {
  CodePointSet result = *this;
  CodePointRanges others;
  const auto add_pair = [&](char32_t a, char32_t b) {
    if (contains(a)) others.emplace_back(b, b);
    if (contains(b)) others.emplace_back(a, a);
  };
  for_each_case_pair(add_pair);
  add_pair(U's', U'\u017F');  // the long s, whose lower case is itself
  add_pair(U'S', U'\u017F');
  result.add(CodePointSet(std::move(others)));
  return result;
}

}  // namespace kvasir::text::regex
