// Which tokens may follow a place of a grammar; each part of an answer is computed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/atlas.h"
#include "grammar/compile/config.h"
#include "grammar/compile/row_store.h"
#include "grammar/compile/stored_mask.h"
#include "grammar/compile/token_walk.h"
#include "grammar/regex/byte_states.h"
#include "grammar/vocabulary.h"

namespace kvasir::grammar {

// Tokens are found in two parts: those that end inside a terminal depend on its state alone, and those in which it
// ends go on with what the row behind it waits for, from the places of the trie where it may end.
//
// Thread safety: none.
class MaskStore {
 public:
  // All outlive this. At most max_bytes of walks are kept.
  MaskStore(const Vocabulary& vocabulary, ByteStates& states, RowStore& rows, std::size_t max_bytes);

  // The tokens that may follow places and two rows (kNoRow: none).
  StoredMask mask(std::span<const Place> places, RowId boundary, RowId recorded);

  std::size_t size_bytes() const { return size_bytes_; }

 private:
  using SharedRemainders = std::shared_ptr<const Remainders>;
  // Scopes and recorded texts between a token's start and a place within it.
  struct Passed {
    std::uint32_t num_closed = 0;  // scopes of before
    std::uint32_t num_opened = 0;  // scopes that are still open
    std::uint32_t texts = 0;       // bit i: a text was recorded in the scope i levels around the innermost

    friend bool operator==(const Passed&, const Passed&) = default;
  };

  void add(RowId row, TerminalId terminal, ByteStateId state, const SharedRemainders& remainders);
  // Adds the tokens that go on from the remainders with what the row waits for.
  void add_behind(RowId row, const SharedRemainders& remainders);
  void add_row(RowId row);
  void note_recorded(const TextMark& mark, const SharedRemainders& remainders);
  void pass(const TextMark& mark);
  const Walk& walk(const Remainders& remainders, ByteStateId state, bool keeps_all_ends);
  std::shared_ptr<const Walk> find_walk(const Remainders& remainders, ByteStateId state, bool keeps_all_ends);
  // The classes of the first characters of what the row waits for.
  CharacterClasses first_classes(RowId row);
  void add(const Walk& walk);
  StoredMask joined();
  StoredMask joined_dense();

  const Vocabulary& vocabulary_;
  ByteStates& states_;
  RowStore& rows_;
  TokenWalker walker_;
  std::size_t max_bytes_;
  std::size_t size_bytes_ = 0;
  struct WalkKey {
    std::uint64_t remainders = 0;
    std::uint64_t state = 0;  // and whether all ends are kept
    friend bool operator==(const WalkKey&, const WalkKey&) = default;
  };
  struct WalkHash {
    std::size_t operator()(const WalkKey& key) const {
      return (key.remainders * 0x9E3779B97F4A7C15 ^ key.state) * 0xBF58476D1CE4E5B9 >> 16;
    }
  };
  std::unordered_map<WalkKey, std::shared_ptr<const Walk>, WalkHash> walks_;
  // Of the mask at hand:
  std::vector<const Walk*> based_;  // walks with a base
  std::vector<TokenId> tokens_;
  std::vector<std::shared_ptr<const Walk>> held_;             // that are not kept
  struct Behind {
    RowId row = 0;
    std::uint64_t remainders = 0;
    Passed passed;

    friend bool operator==(const Behind&, const Behind&) = default;
  };
  std::vector<Behind> seen_behind_;
  RecordedTerminals recorded_;
  Passed passed_;
  bool is_place_ = false;  // the terminal at hand has begun before the token
  TokenMask in_list_;                                         // empty between masks
};

}  // namespace kvasir::grammar
