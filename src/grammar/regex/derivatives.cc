#include "grammar/regex/derivatives.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/term_ranges.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kNotFound = static_cast<std::size_t>(-1);

std::uint32_t one_less(std::uint32_t count) { return count == 0 || count == kUnbounded ? count : count - 1; }

std::vector<const TermRanges*> pointers_to(const std::deque<TermRanges>& inputs) {
  std::vector<const TermRanges*> pointers;
  for (const TermRanges& ranges : inputs) pointers.push_back(&ranges);
  return pointers;
}

}  // namespace

void Derivatives::grow() {
  known_.raw_places.resize(store_.num_terms(), -1);
  known_.live_places.resize(store_.num_terms(), -1);
  known_.lives.resize(store_.num_terms(), Life::kUnknown);
}

const TermRanges& Derivatives::raw(TermId term) {
  grow();
  if (known_.raw_places[term] < 0) {
    TermRanges ranges = derive(term);
    grow();
    known_.raw_places[term] = static_cast<std::int32_t>(known_.raw.size());
    known_.num_ranges += ranges.size();
    known_.raw.push_back(std::move(ranges));
  }
  return known_.raw[static_cast<std::size_t>(known_.raw_places[term])];
}

const TermRanges& Derivatives::of(TermId term) {
  grow();
  if (known_.live_places[term] < 0) {
    TermRanges ranges;
    for (const TermRange& range : raw(term)) {
      if (is_alive(range.target)) ranges.push_back(range);
    }
    known_.live_places[term] = static_cast<std::int32_t>(known_.live.size());
    known_.num_ranges += ranges.size();
    known_.live.push_back(std::move(ranges));
  }
  return known_.live[static_cast<std::size_t>(known_.live_places[term])];
}

TermId Derivatives::next(TermId term, char32_t code_point) {
  const TermRanges& ranges = of(term);
  const auto range = std::ranges::lower_bound(ranges, code_point, {}, &TermRange::last);
  return range != ranges.end() && range->first <= code_point ? range->target : kNothing;
}

bool Derivatives::is_alive(TermId term) {
  if (store_.has_text(term)) return true;
  grow();
  if (known_.lives[term] == Life::kUnknown) search_text(term);
  return known_.lives[term] == Life::kAlive;
}

// From the term to where the end seems nearest, until a text is found. Without one, everything that was reached is dead.
void Derivatives::search_text(TermId term) {
  struct Reached {
    TermId term;
    std::size_t from;
  };
  std::vector<Reached> reached = {{term, 0}};
  std::vector<bool> is_reached(store_.num_terms());
  std::size_t found = kNotFound;
  using Open = std::pair<std::uint32_t, std::size_t>;  // characters to an end at least, and a place in `reached`
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
  const auto reach = [&](std::size_t place) {
    const TermId at = reached[place].term;
    const bool is_alive = store_.has_text(at) || known_.lives[at] == Life::kAlive;
    if (is_alive && found == kNotFound) found = place;
    if (known_.lives[at] != Life::kDead) open.emplace(store_.shortest(at), place);
  };
  for (reach(0); !open.empty() && found == kNotFound && !store_.is_exhausted();) {
    const std::size_t from = open.top().second;
    open.pop();
    const TermRanges& ranges = raw(reached[from].term);
    is_reached.resize(store_.num_terms());
    for (const TermRange& range : ranges) {
      if (range.target == kNothing || is_reached[range.target]) continue;
      is_reached[range.target] = true;
      reached.push_back({range.target, from});
      reach(reached.size() - 1);
    }
  }
  grow();
  if (found == kNotFound) {
    for (const Reached& one : reached) known_.lives[one.term] = Life::kDead;
    return;
  }
  for (std::size_t i = found; i != 0; i = reached[i].from) known_.lives[reached[i].term] = Life::kAlive;
  known_.lives[term] = Life::kAlive;
}

TermRanges Derivatives::derive(TermId term) {
  switch (store_.kind(term)) {
    case TermKind::kNone:
    case TermKind::kEmpty:
      return {};
    case TermKind::kClass:
      return derive_class(term);
    case TermKind::kWord:
      return derive(store_.spelled(term));
    case TermKind::kWords:
      return store_.words_behind(term);
    case TermKind::kConcat:
      return derive_concat(term);
    case TermKind::kRepeat:
      return derive_repeat(term);
    case TermKind::kMultiples:
      return derive_multiples(term);
    case TermKind::kUnion:
    case TermKind::kIntersection:
    case TermKind::kComplement:
      return derive_children(term);
  }
  return {};
}

TermRanges Derivatives::derive_class(TermId term) const {
  TermRanges ranges;
  for (const auto& [first, last] : store_.code_points(term).ranges()) {
    ranges.push_back({first, last, kEmptyText});
  }
  return ranges;
}

// Of abc, where a may be empty: what follows in a, then bc; or what follows in bc.
TermRanges Derivatives::derive_concat(TermId term) {
  std::deque<TermRanges> inputs;
  TermId rest = term;
  while (store_.kind(rest) == TermKind::kConcat) {
    const TermId head = store_.children(rest)[0];
    const TermId tail = store_.children(rest)[1];
    inputs.push_back(map_targets(raw(head), [&](TermId target) { return store_.concat(target, tail); }));
    rest = store_.is_nullable(head) ? tail : kNothing;
  }
  if (rest != kNothing) inputs.push_back(raw(rest));
  if (inputs.size() == 1) return std::move(inputs[0]);
  return combine_ranges(pointers_to(inputs), [&](std::span<const TermId> targets) {
    return store_.any_of({targets.begin(), targets.end()});
  });
}

TermRanges Derivatives::derive_children(TermId term) {
  const TermKind kind = store_.kind(term);
  const std::vector<TermId> children(store_.children(term).begin(), store_.children(term).end());
  std::vector<const TermRanges*> inputs;
  inputs.reserve(children.size());
  for (const TermId child : children) inputs.push_back(&raw(child));
  return combine_ranges(inputs, [&](std::span<const TermId> targets) {
    if (kind == TermKind::kComplement) return store_.complement(targets[0]);
    store_.count_work(targets.size());
    std::vector<TermId> copied(targets.begin(), targets.end());
    if (kind == TermKind::kUnion) std::erase(copied, kNothing);
    return kind == TermKind::kUnion ? store_.any_of(std::move(copied)) : store_.all_of(std::move(copied));
  });
}

TermRanges Derivatives::derive_multiples(TermId term) {
  TermRanges ranges;
  for (const char32_t c : std::u32string_view(U"-.0123456789")) {
    append_range(ranges, {c, c, store_.multiples_behind(term, c)});
  }
  return ranges;
}

TermRanges Derivatives::derive_repeat(TermId term) {
  const TermId child = store_.child(term);
  const TermId rest = store_.repeat(child, one_less(store_.min(term)), one_less(store_.max(term)));
  return map_targets(raw(child), [&](TermId target) { return store_.concat(target, rest); });
}

}  // namespace kvasir::grammar
