#include "grammar/regex/derivatives.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/common_text.h"
#include "grammar/regex/term_ranges.h"

namespace kvasir::grammar {
namespace {

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
  // A chain of any length: all of its parts have to be.
  for (; store_.kind(term) == TermKind::kConcat && !store_.has_text(term); term = store_.children(term)[1]) {
    if (!is_alive(store_.children(term)[0])) return false;
  }
  if (store_.has_text(term)) return true;
  grow();
  if (known_.lives[term] == Life::kUnknown) {
    const bool is_there = has_text(term);
    grow();
    known_.lives[term] = is_there ? Life::kAlive : Life::kDead;
  }
  return known_.lives[term] == Life::kAlive;
}

// The term is one that TermStore::has_text() does not know.
bool Derivatives::has_text(TermId term) {
  const std::vector<TermId> parts(store_.children(term).begin(), store_.children(term).end());
  switch (store_.kind(term)) {
    case TermKind::kNone:
      return false;
    case TermKind::kUnion:
      return std::ranges::any_of(parts, [this](TermId part) { return is_alive(part); });
    case TermKind::kRepeat:
      return is_alive(parts[0]);
    case TermKind::kIntersection:
      return CommonText(store_, *this).is_there(parts);
    default:
      return CommonText(store_, *this).is_there({&term, 1});
  }
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
