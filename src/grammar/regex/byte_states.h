// Automata over bytes for languages over characters: plain UTF-8, or strings of JSON with their quotes and escapes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "grammar/regex/byte_set.h"
#include "grammar/regex/character_classes.h"
#include "grammar/regex/derivatives.h"
#include "grammar/regex/id_table.h"
#include "grammar/regex/term.h"
#include "grammar/regex/text_mark.h"

namespace kvasir::grammar {

// How the characters of a text are written.
enum class TextForm : std::uint8_t {
  kPlain,          // UTF-8
  kJsonCanonical,  // between quotes; an escape only where JSON demands one, in lower case: one text for each string
  kJsonFree,       // between quotes, with any escape that JSON knows but \/; surrogates in pairs
};

// A language in a form: what an edge of a grammar takes.
struct Terminal {
  TermId term = kNothing;
  TextForm form = TextForm::kPlain;
  TextMark mark = {};

  friend auto operator<=>(const Terminal&, const Terminal&) = default;
};

// A place in a terminal. kDeadState: no text goes on like this.
using ByteStateId = std::uint32_t;
inline constexpr ByteStateId kDeadState = 0;

// A deterministic automaton that is made as far as somebody walks. Every state but kDeadState can reach an end.
//
// Thread safety: none.
class ByteStates {
 public:
  // Both outlive this.
  ByteStates(TermStore& store, Derivatives& derivatives) : store_(store), derivatives_(derivatives) {
    states_.push_back({});
    moves_.push_back({.is_made = true});
    run_places_.push_back(-1);
  }

  ByteStateId start(const Terminal& terminal);
  ByteStateId next(ByteStateId state, unsigned char byte) {
    const Moves& moves = made_moves(state);
    if (!moves.live.test(byte)) return kDeadState;
    if (moves.is_wide) return rows_[moves.first][byte];
    return targets_[moves.first + moves.live.count_below(byte)];
  }
  // The bytes that lead on.
  const ByteSet& live(ByteStateId state) { return made_moves(state).live; }
  // The terminal may end here.
  bool is_accepting(ByteStateId state) const { return states_[state].is_accepting; }
  // The terminal has to end here: no byte leads on.
  bool is_final(ByteStateId state) { return live(state).empty(); }
  // No character is begun and none is escaped.
  bool is_between(ByteStateId id) const {
    const State& state = states_[id];
    return state.phase == Phase::kBetween || (state.phase == Phase::kWord && state.num_left == 0);
  }

  // Characters that may follow a state, whichever they are and in whatever order.
  struct Run {
    CharacterClasses classes = 0;
    std::uint32_t num_characters = 0;  // at most so many; kUnbounded: any number
    bool may_end = false;              // the terminal may end behind one of them
    bool is_bounded = false;           // .. and more than that never follow
  };
  const Run& run(ByteStateId state);
  // The state that all characters beyond ASCII lead to; kDeadState when they lead to several or to none.
  ByteStateId beyond_ascii_target(ByteStateId state);
  // The state that most classes of characters lead to; kDeadState when no more than a few bytes lead on.
  ByteStateId main_target(ByteStateId state);

  // The state with its counters clamped (TermStore::clamped).
  ByteStateId clamped(ByteStateId state, std::uint32_t num_characters);

  // The same for states that read alike, in every grammar of this process.
  std::pair<std::uint64_t, std::uint64_t> fingerprint(ByteStateId state) const;

  std::size_t num_states() const { return states_.size(); }
  std::size_t size_bytes() const {
    return states_.size() * (sizeof(State) + sizeof(Moves) + sizeof(std::int32_t)) + found_.size_bytes() +
           targets_.size() * sizeof(ByteStateId) + rows_.size() * sizeof(Row) + runs_.size() * sizeof(Run);
  }

 private:
  enum class Phase : std::uint8_t {
    kBetween,     // characters of UTF-8
    kInside,      // of a character whose code points in [first, last] lead to several languages
    kSettled,     // inside a character; whichever it is, `term` is next
    kWord,        // behind `first` bytes of the word that `term` begins with
    kOpen,        // before the quote
    kEscape,      // behind a backslash
    kHex,         // behind \u and some digits: first is their value, num_left the digits to come
    kLowEscape,   // behind a high surrogate (first): the backslash of the low one
    kLowU,        // .. its u
    kLowHex,      // .. its digits
    kClosed,      // behind the last quote
  };
  struct State {
    TermId term = kNothing;
    TextForm form = TextForm::kPlain;
    Phase phase = Phase::kBetween;
    std::uint8_t num_left = 0;  // bytes or digits of the character that are still to come
    char32_t first = 0;
    char32_t last = 0;
    bool is_accepting = false;

    friend auto operator<=>(const State&, const State&) = default;
  };
  static std::uint64_t hash_of(const State& state);
  using Row = std::array<ByteStateId, 256>;
  // Where bytes lead: by byte in a row of rows_, or in targets_ by rank among the live ones.
  struct Moves {
    ByteSet live;
    std::uint32_t first = 0;
    bool is_made = false;
    bool is_wide = false;
  };
  // Moves on their way: row[byte] of each live byte.
  struct Draft {
    ByteSet live;
    Row row = {};

    void add(unsigned char byte, ByteStateId target) {
      if (target == kDeadState) return;
      live.set(byte);
      row[byte] = target;
    }
  };

  ByteStateId intern(State state);
  ByteStateId between(TermId term, TextForm form);
  ByteStateId character(const State& state, char32_t code_point);
  ByteStateId inside(const State& state, char32_t first, char32_t last, std::uint8_t num_left);
  const Moves& made_moves(ByteStateId state) {
    if (!moves_[state].is_made) make_moves(state);
    return moves_[state];
  }
  void make_moves(ByteStateId state);
  // The word that the state is in, or before; kNothing: it is not.
  TermId word_of(const State& state) const;
  void make_word_moves(ByteStateId id, TermId word);
  ByteStateId behind_word_byte(const State& state, TermId word);
  void draft_between(const State& state, Draft& draft);
  void draft_leads(const State& state, Draft& draft);
  std::span<const TermRange> ranges_of(TermId term);

  ByteStateId compute(const State& state, unsigned char byte);
  ByteStateId compute_inside(const State& state, unsigned char byte);
  ByteStateId compute_escape(const State& state, unsigned char byte);
  ByteStateId compute_hex(const State& state, unsigned char byte);
  ByteStateId compute_low(const State& state, unsigned char byte);
  ByteStateId hex(const State& state, char32_t first, std::uint8_t num_left);
  bool has_target(const State& state, char32_t first, char32_t last);
  bool has_escape(const State& state);
  bool has_pair(const State& state, char32_t first, char32_t last);

  Run compute_run(ByteStateId state);
  CharacterClasses loops(ByteStateId state);

  TermStore& store_;
  Derivatives& derivatives_;
  std::vector<State> states_;
  std::vector<Moves> moves_;         // by state; made at the first question
  std::vector<ByteStateId> targets_;
  std::deque<Row> rows_;
  std::vector<TermRange> ranges_;    // of the state at hand
  std::vector<std::int32_t> run_places_;  // by state, in runs_; -1: not asked yet
  std::deque<Run> runs_;
  IdTable found_;
};

}  // namespace kvasir::grammar
