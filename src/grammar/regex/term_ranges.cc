#include "grammar/regex/term_ranges.h"

#include <algorithm>
#include <cstddef>

namespace kvasir::grammar {
namespace {

// Where a part may begin, in ascending order; the last one is behind all characters.
std::vector<char32_t> part_starts(std::span<const TermRanges> inputs) {
  std::vector<char32_t> starts = {0, kFirstSurrogate, kLastSurrogate + 1, kLastCodePoint + 1};
  for (const TermRanges& ranges : inputs) {
    for (const TermRange& range : ranges) {
      starts.push_back(range.first);
      starts.push_back(range.last + 1);
    }
  }
  std::ranges::sort(starts);
  starts.erase(std::ranges::unique(starts).begin(), starts.end());
  return starts;
}

}  // namespace

void append_range(TermRanges& ranges, const TermRange& range) {
  if (range.target == kNothing) return;
  if (!ranges.empty() && ranges.back().last + 1 == range.first && ranges.back().target == range.target) {
    ranges.back().last = range.last;
  } else {
    ranges.push_back(range);
  }
}

TermRanges combine_ranges(std::span<const TermRanges> inputs,
                          const std::function<TermId(std::span<const TermId> targets)>& combine) {
  const std::vector<char32_t> starts = part_starts(inputs);
  std::vector<std::size_t> places(inputs.size());
  std::vector<TermId> targets(inputs.size());
  std::vector<TermId> last_targets;
  TermId last_result = kNothing;
  TermRanges result;
  for (std::size_t part = 0; part + 1 < starts.size(); ++part) {
    const char32_t first = starts[part];
    if (first == kFirstSurrogate) continue;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::size_t& place = places[i];
      while (place < inputs[i].size() && inputs[i][place].last < first) ++place;
      const bool is_inside = place < inputs[i].size() && inputs[i][place].first <= first;
      targets[i] = is_inside ? inputs[i][place].target : kNothing;
    }
    if (part == 0 || targets != last_targets) {
      last_result = combine(targets);
      last_targets = targets;
    }
    append_range(result, {first, starts[part + 1] - 1, last_result});
  }
  return result;
}

TermRanges map_targets(const TermRanges& ranges, const std::function<TermId(TermId)>& change) {
  TermRanges result;
  for (const TermRange& range : ranges) {
    append_range(result, {range.first, range.last, change(range.target)});
  }
  return result;
}

}  // namespace kvasir::grammar
