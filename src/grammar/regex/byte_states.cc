#include "grammar/regex/byte_states.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "grammar/regex/fingerprint.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxNarrowMoves = 16;
constexpr char32_t kFirstLowSurrogate = 0xDC00;
constexpr char32_t kFirstSupplementary = 0x10000;

std::optional<char32_t> hex_digit(unsigned char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return std::nullopt;
}

// What a short escape of JSON means; \/ is left out.
std::optional<char32_t> short_escape(unsigned char byte) {
  constexpr std::string_view kNames = "\"\\bfnrt";
  constexpr std::string_view kMeanings = "\"\\\b\f\n\r\t";
  const std::size_t at = kNames.find(static_cast<char>(byte));
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned char>(kMeanings[at]);
}

// Characters that JSON writes as \u00XX in its shortest form.
bool needs_long_escape(char32_t code_point) {
  constexpr std::u32string_view kShort = U"\b\f\n\r\t";
  return code_point < 0x20 && kShort.find(code_point) == std::u32string_view::npos;
}

bool is_surrogate(char32_t code_point) {
  return code_point >= kFirstSurrogate && code_point <= kLastSurrogate;
}

}  // namespace

std::uint64_t ByteStates::hash_of(const State& state) {
  std::uint64_t hash = std::uint64_t{state.term} << 24 | std::uint64_t{static_cast<std::uint8_t>(state.form)} << 16 |
                       std::uint64_t{static_cast<std::uint8_t>(state.phase)} << 8 | state.num_left;
  hash = (hash ^ hash >> 31) * 0x9E3779B97F4A7C15;
  hash = (hash ^ hash >> 29 ^ (std::uint64_t{state.first} << 32 | state.last)) * 0xBF58476D1CE4E5B9;
  return hash ^ hash >> 32;
}

std::pair<std::uint64_t, std::uint64_t> ByteStates::fingerprint(ByteStateId id) const {
  const State& state = states_[id];
  const auto [first, second] = store_.fingerprint(state.term);
  Fingerprint hash(first);
  hash.add(second);
  hash.add(std::uint64_t{static_cast<std::uint8_t>(state.form)} << 16 |
           std::uint64_t{static_cast<std::uint8_t>(state.phase)} << 8 | state.num_left);
  hash.add(std::uint64_t{state.first} << 32 | state.last);
  return hash.value();
}

ByteStateId ByteStates::intern(State state) {
  if (state.term == kNothing) return kDeadState;
  const bool is_plain_end = state.form == TextForm::kPlain && state.phase == Phase::kBetween;
  state.is_accepting = state.phase == Phase::kClosed || (is_plain_end && store_.is_nullable(state.term));
  const std::uint64_t hash = hash_of(state);
  const ByteStateId found = found_.find(hash, [&](ByteStateId id) { return states_[id] == state; });
  if (found != IdTable::kNone) return found;
  const auto id = static_cast<ByteStateId>(states_.size());
  states_.push_back(state);
  moves_.push_back({});
  run_places_.push_back(-1);
  found_.insert(hash, id);
  return id;
}

ByteStateId ByteStates::start(const Terminal& terminal) {
  if (!derivatives_.is_alive(terminal.term)) return kDeadState;
  const bool is_plain = terminal.form == TextForm::kPlain;
  return intern({.term = terminal.term, .form = terminal.form, .phase = is_plain ? Phase::kBetween : Phase::kOpen});
}

ByteStateId ByteStates::clamped(ByteStateId id, std::uint32_t num_characters) {
  State state = states_[id];
  state.term = store_.clamped(state.term, num_characters);
  return intern(state);
}

ByteStateId ByteStates::between(TermId term, TextForm form) { return intern({.term = term, .form = form}); }

ByteStateId ByteStates::character(const State& state, char32_t code_point) {
  return between(derivatives_.next(state.term, code_point), state.form);
}

bool ByteStates::has_target(const State& state, char32_t first, char32_t last) {
  const TermRanges& ranges = derivatives_.of(state.term);
  const auto range = std::ranges::lower_bound(ranges, first, {}, &TermRange::last);
  return range != ranges.end() && range->first <= last;
}

// Inside a character whose code point is within [first, last], before its last num_left bytes.
ByteStateId ByteStates::inside(const State& state, char32_t first, char32_t last, std::uint8_t num_left) {
  if (num_left == 0) return character(state, first);
  const TermRanges& ranges = derivatives_.of(state.term);
  const auto range = std::ranges::lower_bound(ranges, first, {}, &TermRange::last);
  if (range == ranges.end() || range->first > last) return kDeadState;
  if (range->first > first || range->last < last) {
    return intern({.term = state.term, .form = state.form, .phase = Phase::kInside, .num_left = num_left,
                   .first = first, .last = last});
  }
  // The next byte's bounds say all that is left to know.
  const int shift = 6 * (num_left - 1);
  return intern({.term = range->target, .form = state.form, .phase = Phase::kSettled, .num_left = num_left,
                 .first = (first >> shift & 0x3F), .last = (last >> shift & 0x3F)});
}

// The ranges of the first character. Requires: read before any term is made.
std::span<const TermRange> ByteStates::ranges_of(TermId term) {
  ranges_.clear();
  // A literal needs no derivative: behind its first character is its rest, which is a term already.
  const bool is_concat = store_.kind(term) == TermKind::kConcat;
  const TermId head = is_concat ? store_.children(term)[0] : term;
  if (!store_.is_surely_alive(term) || store_.kind(head) != TermKind::kClass) return derivatives_.of(term);
  const TermId rest = is_concat ? store_.children(term)[1] : kEmptyText;
  for (const auto& [first, last] : store_.code_points(head).ranges()) ranges_.push_back({first, last, rest});
  return ranges_;
}

void ByteStates::draft_between(const State& state, Draft& draft) {
  const bool is_json = state.form != TextForm::kPlain;
  bool has_leads = false;
  for (const TermRange& range : ranges_of(state.term)) {
    const char32_t first = std::max<char32_t>(range.first, is_json ? 0x20 : 0);
    has_leads = has_leads || range.last >= 0x80;
    if (first > std::min<char32_t>(range.last, 0x7F)) continue;
    const ByteStateId target = between(range.target, state.form);
    for (char32_t c = first; c <= std::min<char32_t>(range.last, 0x7F); ++c) {
      if (!is_json || (c != '"' && c != '\\')) draft.add(static_cast<unsigned char>(c), target);
    }
  }
  if (is_json && store_.is_nullable(state.term)) {
    draft.add('"', intern({.term = kEmptyText, .form = state.form, .phase = Phase::kClosed}));
  }
  if (is_json && has_escape(state)) {
    draft.add('\\', intern({.term = state.term, .form = state.form, .phase = Phase::kEscape}));
  }
  if (has_leads) draft_leads(state, draft);
}

// The first bytes of characters beyond ASCII. Neighbours often lead to one state.
void ByteStates::draft_leads(const State& state, Draft& draft) {
  const TermRanges& ranges = derivatives_.of(state.term);
  auto range = ranges.begin();
  TermRange last_settled;
  std::uint8_t last_num_left = 0;
  ByteStateId last_target = kDeadState;
  for (unsigned byte = 0xC2; byte <= 0xF4; ++byte) {
    const auto num_left = static_cast<std::uint8_t>(byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3);
    const char32_t bits = byte & (byte < 0xE0 ? 0x1F : byte < 0xF0 ? 0x0F : 0x07);
    char32_t first = bits << 6 * num_left;
    char32_t last = first + (char32_t{1} << 6 * num_left) - 1;
    if (byte == 0xE0) first = 0x800;
    if (byte == 0xED) last = kFirstSurrogate - 1;
    if (byte == 0xF0) first = kFirstSupplementary;
    if (byte == 0xF4) last = kLastCodePoint;
    while (range != ranges.end() && range->last < first) ++range;
    if (range == ranges.end()) return;
    if (range->first > last) continue;
    const bool is_settled = range->first <= first && range->last >= last;
    const int shift = 6 * (num_left - 1);
    const TermRange settled = {first >> shift & 0x3F, last >> shift & 0x3F, range->target};
    if (!is_settled || last_target == kDeadState || num_left != last_num_left || settled != last_settled) {
      last_target = inside(state, first, last, num_left);
      last_settled = is_settled ? settled : TermRange{};
      last_num_left = num_left;
    }
    draft.add(static_cast<unsigned char>(byte), last_target);
  }
}

ByteStateId ByteStates::compute_inside(const State& state, unsigned char byte) {
  if (byte < 0x80 || byte > 0xBF) return kDeadState;
  const char32_t bits = byte & 0x3F;
  const auto num_left = static_cast<std::uint8_t>(state.num_left - 1);
  if (state.phase == Phase::kSettled) {
    if (bits < state.first || bits > state.last) return kDeadState;
    if (num_left == 0) return between(state.term, state.form);
    return intern({.term = state.term, .form = state.form, .phase = Phase::kSettled, .num_left = num_left,
                   .first = 0, .last = 0x3F});
  }
  const int shift = 6 * num_left;
  const char32_t begin = (state.first >> (shift + 6) << (shift + 6)) + (bits << shift);
  const char32_t first = std::max(state.first, begin);
  const char32_t last = std::min<char32_t>(state.last, begin + (char32_t{1} << shift) - 1);
  return first > last ? kDeadState : inside(state, first, last, num_left);
}

ByteStateId ByteStates::compute_escape(const State& state, unsigned char byte) {
  if (byte == 'u') return hex(state, 0, 4);
  const std::optional<char32_t> code_point = short_escape(byte);
  return code_point ? character(state, *code_point) : kDeadState;
}

// Behind \u and digits of the value `first`, before num_left more.
ByteStateId ByteStates::hex(const State& state, char32_t first, std::uint8_t num_left) {
  const char32_t begin = first << 4 * num_left;
  const char32_t end = begin + (char32_t{1} << 4 * num_left);
  const bool is_canonical = state.form == TextForm::kJsonCanonical;
  bool has_text = false;
  if (is_canonical) {
    for (char32_t c = begin; c < std::min<char32_t>(end, 0x20) && !has_text; ++c) {
      has_text = needs_long_escape(c) && derivatives_.next(state.term, c) != kNothing;
    }
  } else {
    has_text = has_target(state, begin, end - 1) || has_pair(state, begin, end - 1);
  }
  if (!has_text) return kDeadState;
  return intern({.term = state.term, .form = state.form, .phase = Phase::kHex, .num_left = num_left, .first = first});
}

ByteStateId ByteStates::compute_hex(const State& state, unsigned char byte) {
  const std::optional<char32_t> digit = hex_digit(byte);
  const bool is_upper_case = byte >= 'A' && byte <= 'F';
  if (!digit || (is_upper_case && state.form == TextForm::kJsonCanonical)) return kDeadState;
  const char32_t value = state.first << 4 | *digit;
  if (state.num_left > 1) return hex(state, value, static_cast<std::uint8_t>(state.num_left - 1));
  if (!is_surrogate(value)) {
    const bool is_allowed = state.form == TextForm::kJsonFree || needs_long_escape(value);
    return is_allowed ? character(state, value) : kDeadState;
  }
  if (value >= kFirstLowSurrogate || state.form != TextForm::kJsonFree) return kDeadState;
  const char32_t first = kFirstSupplementary + (value - kFirstSurrogate) * 0x400;
  if (!has_target(state, first, first + 0x3FF)) return kDeadState;
  return intern({.term = state.term, .form = state.form, .phase = Phase::kLowEscape, .num_left = 6, .first = first,
                 .last = first + 0x3FF});
}

// The second half of a pair: \uDC00 to \uDFFF, whose digits say which character of [first, last] it is.
ByteStateId ByteStates::compute_low(const State& state, unsigned char byte) {
  State next = state;
  next.num_left = static_cast<std::uint8_t>(state.num_left - 1);
  if (state.phase == Phase::kLowEscape || state.phase == Phase::kLowU) {
    if (byte != (state.phase == Phase::kLowEscape ? '\\' : 'u')) return kDeadState;
    next.phase = state.phase == Phase::kLowEscape ? Phase::kLowU : Phase::kLowHex;
    return intern(next);
  }
  const std::optional<char32_t> digit = hex_digit(byte);
  if (!digit) return kDeadState;
  if (state.num_left == 4) return *digit == 0xD ? intern(next) : kDeadState;
  if (state.num_left == 3 && *digit < 0xC) return kDeadState;
  const char32_t bits = state.num_left == 3 ? *digit - 0xC : *digit;
  next.first = state.first + (bits << 4 * next.num_left);
  next.last = next.first + (char32_t{1} << 4 * next.num_left) - 1;
  if (next.num_left == 0) return character(state, next.first);
  return has_target(state, next.first, next.last) ? intern(next) : kDeadState;
}

ByteStateId ByteStates::compute(const State& state, unsigned char byte) {
  switch (state.phase) {
    case Phase::kBetween:  // draft_between
    case Phase::kWord:     // make_word_moves
    case Phase::kClosed:
      return kDeadState;
    case Phase::kInside:
    case Phase::kSettled:
      return compute_inside(state, byte);
    case Phase::kOpen:
      return byte == '"' ? between(state.term, state.form) : kDeadState;
    case Phase::kEscape:
      return compute_escape(state, byte);
    case Phase::kHex:
      return compute_hex(state, byte);
    case Phase::kLowEscape:
    case Phase::kLowU:
    case Phase::kLowHex:
      return compute_low(state, byte);
  }
  return kDeadState;
}

TermId ByteStates::word_of(const State& state) const {
  if (state.form != TextForm::kPlain || (state.phase != Phase::kBetween && state.phase != Phase::kWord)) return kNothing;
  const bool is_concat = store_.kind(state.term) == TermKind::kConcat;
  const TermId head = is_concat ? store_.child(state.term) : state.term;
  return store_.kind(head) == TermKind::kWord ? head : kNothing;
}

ByteStateId ByteStates::behind_word_byte(const State& state, TermId word) {
  const std::string_view text = store_.word_text(word);
  const auto behind = static_cast<char32_t>(state.first + 1);
  if (behind == text.size()) {
    return between(state.term == word ? kEmptyText : store_.children(state.term)[1], TextForm::kPlain);
  }
  std::size_t num_left = 0;
  while (behind + num_left < text.size() && (static_cast<unsigned char>(text[behind + num_left]) & 0xC0) == 0x80) ++num_left;
  return intern({.term = state.term, .phase = Phase::kWord, .num_left = static_cast<std::uint8_t>(num_left), .first = behind});
}

// One byte leads on.
void ByteStates::make_word_moves(ByteStateId id, TermId word) {
  const State state = states_[id];
  const auto byte = static_cast<unsigned char>(store_.word_text(word)[state.first]);
  const ByteStateId target = behind_word_byte(state, word);
  Moves moves = {.live = {}, .first = static_cast<std::uint32_t>(targets_.size()), .is_made = true};
  if (target != kDeadState) {
    moves.live.set(byte);
    targets_.push_back(target);
  }
  moves_[id] = moves;
}

void ByteStates::make_moves(ByteStateId id) {
  const State state = states_[id];
  if (const TermId word = word_of(state); word != kNothing) return make_word_moves(id, word);
  Draft draft;
  if (state.phase == Phase::kBetween) {
    draft_between(state, draft);
  } else if (state.phase == Phase::kInside || state.phase == Phase::kSettled) {
    for (unsigned byte = 0x80; byte <= 0xBF; ++byte) {
      draft.add(static_cast<unsigned char>(byte), compute(state, static_cast<unsigned char>(byte)));
    }
  } else {
    for (const unsigned char byte : std::string_view("\"\\0123456789ABCDEFabcdefnrtu")) {
      draft.add(byte, compute(state, byte));
    }
  }
  Moves moves = {.live = draft.live, .is_made = true, .is_wide = draft.live.count() > kMaxNarrowMoves};
  if (moves.is_wide) {
    moves.first = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back(draft.row);
  } else {
    moves.first = static_cast<std::uint32_t>(targets_.size());
    for (ByteSet rest = draft.live; !rest.empty();) targets_.push_back(draft.row[rest.take_first()]);
  }
  moves_[id] = moves;
}

// Whether a backslash may come: some character has an escape.
bool ByteStates::has_escape(const State& state) {
  for (const unsigned char name : std::string_view("\"\\bfnrt")) {
    if (derivatives_.next(state.term, *short_escape(name)) != kNothing) return true;
  }
  return hex(state, 0, 4) != kDeadState;
}

// Whether a high surrogate of [first, last] begins a pair that may come.
bool ByteStates::has_pair(const State& state, char32_t first, char32_t last) {
  const char32_t begin = std::max(first, kFirstSurrogate);
  const char32_t end = std::min<char32_t>(last, kFirstLowSurrogate - 1);
  if (begin > end) return false;
  const auto character_of = [](char32_t high) { return kFirstSupplementary + (high - kFirstSurrogate) * 0x400; };
  return has_target(state, character_of(begin), character_of(end) + 0x3FF);
}

}  // namespace kvasir::grammar
