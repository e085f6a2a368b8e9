#include "grammar/regex/term_ranges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvasir::grammar {
namespace {

// From a character on, an input leads to another target.
struct Change {
  char32_t at = 0;
  std::uint32_t input = 0;
  TermId target = kNothing;
};

// In ascending order, with one at each end and at the surrogates.
std::vector<Change> changes_of(std::span<const TermRanges* const> inputs) {
  std::vector<Change> changes;
  std::size_t num_ranges = 0;
  for (const TermRanges* ranges : inputs) num_ranges += ranges->size();
  changes.reserve(2 * num_ranges);
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    const TermRanges& ranges = *inputs[i];
    for (std::size_t at = 0; at < ranges.size(); ++at) {
      changes.push_back({ranges[at].first, i, ranges[at].target});
      const bool goes_on = at + 1 < ranges.size() && ranges[at + 1].first == ranges[at].last + 1;
      if (!goes_on) changes.push_back({ranges[at].last + 1, i, kNothing});
    }
  }
  std::ranges::sort(changes, {}, &Change::at);
  return changes;
}

// The results for the targets that came last: classes of many ranges lead to few.
class KnownResults {
 public:
  using Combine = std::function<TermId(std::span<const TermId> targets)>;

  explicit KnownResults(const Combine& combine) : combine_(combine) {}

  TermId of(const std::vector<TermId>& targets) {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (std::ranges::equal(std::span(targets_).subspan(i * targets.size(), targets.size()), targets)) return results_[i];
    }
    const TermId result = combine_(targets);
    if (results_.size() < kMaxKnown) {
      results_.push_back(result);
      targets_.insert(targets_.end(), targets.begin(), targets.end());
    } else {
      const std::size_t place = next_++ % kMaxKnown;
      results_[place] = result;
      std::ranges::copy(targets, targets_.begin() + static_cast<std::ptrdiff_t>(place * targets.size()));
    }
    return result;
  }

 private:
  static constexpr std::size_t kMaxKnown = 6;

  const Combine& combine_;
  std::vector<TermId> targets_;  // of each result
  std::vector<TermId> results_;
  std::size_t next_ = 0;  // to be forgotten
};

}  // namespace

void append_range(TermRanges& ranges, const TermRange& range) {
  if (range.target == kNothing) return;
  if (!ranges.empty() && ranges.back().last + 1 == range.first && ranges.back().target == range.target) {
    ranges.back().last = range.last;
  } else {
    ranges.push_back(range);
  }
}

TermRanges combine_ranges(std::span<const TermRanges* const> inputs,
                          const std::function<TermId(std::span<const TermId> targets)>& combine) {
  const std::vector<Change> changes = changes_of(inputs);
  std::vector<TermId> targets(inputs.size(), kNothing);
  KnownResults results(combine);
  TermId result_of_targets = changes.empty() || changes[0].at > 0 ? results.of(targets) : kNothing;
  TermRanges result;
  char32_t first = 0;
  const auto append_until = [&](char32_t end) {
    if (first <= kLastSurrogate && end > kFirstSurrogate) {
      if (first < kFirstSurrogate) append_range(result, {first, kFirstSurrogate - 1, result_of_targets});
      first = kLastSurrogate + 1;
    }
    if (first < end) append_range(result, {first, end - 1, result_of_targets});
    first = std::max(first, end);
  };
  for (std::size_t i = 0; i < changes.size();) {
    const char32_t at = changes[i].at;
    append_until(at);
    for (; i < changes.size() && changes[i].at == at; ++i) targets[changes[i].input] = changes[i].target;
    if (at <= kLastCodePoint) result_of_targets = results.of(targets);
  }
  append_until(kLastCodePoint + 1);
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
