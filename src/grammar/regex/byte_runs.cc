// Which characters may follow a state whatever their order (ByteStates::run).
#include <algorithm>
#include <array>
#include <optional>

#include "grammar/regex/byte_states.h"

namespace kvasir::grammar {
namespace {

// Characters that JSON does not write as themselves.
constexpr CharacterClasses kEscapedClasses = character_class('"') | character_class('\\') | character_class('\t') |
                                             character_class('\n') | character_class('\r') | character_class(0x01);

constexpr std::size_t kMinMainBytes = 16;

constexpr std::array<std::uint8_t, kNumAsciiClasses> kClassSizes = [] {
  std::array<std::uint8_t, kNumAsciiClasses> sizes = {};
  for (char32_t c = 0; c < 0x80; ++c) ++sizes[ascii_class(c)];
  return sizes;
}();

// Texts of some characters, each of which is the start of a text of the language.
struct TermRun {
  CharacterClasses classes = 0;
  std::uint32_t num_characters = 0;
  bool stays_nullable = false;  // and each is itself a text of the language
  bool is_bounded = false;      // longer ones are no starts of texts
};

CharacterClasses classes_of(const text::regex::CodePointSet& set) {
  std::array<std::uint8_t, kNumAsciiClasses> num_members = {};
  for (const auto& [first, last] : set.ranges()) {
    for (char32_t c = first; c <= std::min<char32_t>(last, 0x7F); ++c) ++num_members[ascii_class(c)];
  }
  CharacterClasses classes = 0;
  for (std::size_t i = 0; i < kNumAsciiClasses; ++i) {
    if (num_members[i] == kClassSizes[i]) classes |= CharacterClasses{1} << i;
  }
  const auto has_all = [&](char32_t first, char32_t last) {
    return std::ranges::any_of(set.ranges(),
                               [&](const auto& range) { return range.first <= first && range.second >= last; });
  };
  if (has_all(0x80, kFirstSurrogate - 1) && has_all(kLastSurrogate + 1, kLastCodePoint)) classes |= kBeyondAscii;
  return classes;
}

TermRun term_run(const TermStore& store, TermId term) {
  const auto children = store.children(term);
  switch (store.kind(term)) {
    case TermKind::kClass:
      return {.classes = classes_of(store.code_points(term)), .num_characters = 1};
    case TermKind::kRepeat: {
      if (store.kind(children[0]) != TermKind::kClass) return {};
      const CharacterClasses classes = classes_of(store.code_points(children[0]));
      return {.classes = classes, .num_characters = store.max(term), .stays_nullable = store.min(term) == 0,
              .is_bounded = true};
    }
    case TermKind::kConcat: {
      TermRun run = term_run(store, children[0]);
      run.stays_nullable = run.stays_nullable && store.is_nullable(children[1]);
      run.is_bounded = false;
      return run;
    }
    case TermKind::kIntersection: {
      // Parts may end each for itself at different places, so that all of them have to be able to end anywhere.
      TermRun joined = {.classes = ~kBrokenCharacter, .num_characters = kUnbounded, .stays_nullable = true};
      for (const TermId child : children) {
        const TermRun run = term_run(store, child);
        if (!run.stays_nullable) return {};
        joined.classes &= run.classes;
        if (run.num_characters > joined.num_characters) continue;
        joined.num_characters = run.num_characters;
        joined.is_bounded = run.is_bounded;
      }
      return joined;
    }
    default:
      return {};
  }
}

}  // namespace

// The classes of characters that all lead from the state back to it.
CharacterClasses ByteStates::loops(ByteStateId id) {
  const State state = states_[id];
  std::array<bool, kNumAsciiClasses> leads_off = {};
  for (unsigned char byte = 0; byte < 0x80; ++byte) {
    if (next(id, byte) != id) leads_off[ascii_class(byte)] = true;
  }
  CharacterClasses classes = 0;
  for (std::size_t i = 0; i < kNumAsciiClasses; ++i) {
    if (!leads_off[i]) classes |= CharacterClasses{1} << i;
  }
  const auto leads_back = [&](char32_t first, char32_t last) {
    const TermRanges& ranges = derivatives_.of(state.term);
    const auto range = std::ranges::lower_bound(ranges, first, {}, &TermRange::last);
    return range != ranges.end() && range->first <= first && range->last >= last && range->target == state.term;
  };
  if (leads_back(0x80, kFirstSurrogate - 1) && leads_back(kLastSurrogate + 1, kLastCodePoint)) classes |= kBeyondAscii;
  return classes;
}

ByteStates::Run ByteStates::compute_run(ByteStateId id) {
  const State state = states_[id];
  if (state.phase != Phase::kBetween || live(id).count() < 2) return {};
  const bool is_plain = state.form == TextForm::kPlain;
  Run run = {.may_end = is_plain};
  const TermRun found = term_run(store_, state.term);
  if (found.stays_nullable || store_.is_surely_alive(state.term)) {
    run.classes = found.classes;
    run.num_characters = found.num_characters;
    run.is_bounded = found.is_bounded;
  }
  if (!is_plain) run.classes &= ~kEscapedClasses;
  if (run.classes != 0) return run;
  run.classes = loops(id);
  run.num_characters = kUnbounded;
  run.may_end = state.is_accepting;
  return run;
}

const ByteStates::Run& ByteStates::run(ByteStateId state) {
  if (run_places_[state] < 0) {
    const Run run = compute_run(state);
    run_places_[state] = static_cast<std::int32_t>(runs_.size());
    runs_.push_back(run);
  }
  return runs_[static_cast<std::size_t>(run_places_[state])];
}

ByteStateId ByteStates::beyond_ascii_target(ByteStateId id) {
  const State state = states_[id];
  if (state.phase != Phase::kBetween || word_of(state) != kNothing) return kDeadState;
  const TermRanges& ranges = derivatives_.of(state.term);
  const auto target = [&](char32_t first, char32_t last) {
    const auto range = std::ranges::lower_bound(ranges, first, {}, &TermRange::last);
    return range != ranges.end() && range->first <= first && range->last >= last ? range->target : kNothing;
  };
  const TermId below = target(0x80, kFirstSurrogate - 1);
  return below == target(kLastSurrogate + 1, kLastCodePoint) ? between(below, state.form) : kDeadState;
}

ByteStateId ByteStates::main_target(ByteStateId id) {
  if (!is_between(id) || live(id).count() < kMinMainBytes) return kDeadState;
  std::array<ByteStateId, kNumAsciiClasses> targets = {};
  std::array<bool, kNumAsciiClasses> is_mixed = {};
  for (unsigned char byte = 0; byte < 0x80; ++byte) {
    const std::size_t at = ascii_class(byte);
    const ByteStateId target = next(id, byte);
    is_mixed[at] = is_mixed[at] || (targets[at] != kDeadState && targets[at] != target);
    targets[at] = target;
  }
  ByteStateId best = kDeadState;
  std::ptrdiff_t most = 0;
  for (std::size_t i = 0; i < kNumAsciiClasses; ++i) {
    if (is_mixed[i] || targets[i] == kDeadState || targets[i] == best) continue;
    const std::ptrdiff_t count = std::ranges::count(targets, targets[i]);
    if (count > most) {
      most = count;
      best = targets[i];
    }
  }
  return best;
}

}  // namespace kvasir::grammar
