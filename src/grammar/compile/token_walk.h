// Walks over texts of tokens with a lexer state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "grammar/atlas.h"
#include "grammar/regex/byte_states.h"
#include "grammar/regex/character_classes.h"
#include "grammar/token_trie.h"
#include "grammar/vocabulary.h"

namespace kvasir::grammar {

// Thread safety: none.
class TokenWalker {
 public:
  // Both outlive this.
  TokenWalker(const Vocabulary& vocabulary, ByteStates& states) : vocabulary_(vocabulary), states_(states) {}

  // What the state takes of the remainders. With keeps_all_ends no end is passed over.
  std::shared_ptr<const Walk> walk(const Remainders& remainders, ByteStateId state, bool keeps_all_ends);

 private:
  struct Place {
    const TokenTrie* trie = nullptr;
    TokenTrie::NodeId node = 0;
  };
  // A node whose children are visited.
  struct Frame {
    const TokenTrie* trie = nullptr;
    TokenTrie::NodeId next = 0;            // the next child, of a node without a fan
    TokenTrie::NodeId end = 0;
    const TokenTrie::Fan* fan = nullptr;
    ByteSet live;                          // bytes that are still to come
    ByteStateId state = kDeadState;
    ByteStates::Run run;
    ByteStates::Run run_beyond_ascii;      // behind a character beyond ASCII, where `run` has none of those
    CharacterClasses prefix = 0;           // of the characters so far
    std::uint32_t num_characters = 0;
  };
  // Tokens that are in the mask before the walk. An approximate base may have tokens that the walk takes out.
  struct Base {
    std::shared_ptr<const DenseMask> mask;
    CharacterClasses classes = 0;
    std::uint32_t num_characters = 0;
    std::uint32_t bound = 0;  // of the run, however long tokens are
    bool is_approximate = false;

    bool covers(CharacterClasses all, std::uint32_t count) const {
      return mask != nullptr && (all & ~classes) == 0 && count <= num_characters;
    }
  };

  void choose_base(const Remainders& remainders, ByteStateId state);
  void walk_from(const Place& top, ByteStateId state);
  void open(const Place& place, ByteStateId state, CharacterClasses prefix, std::uint32_t num_characters);
  static bool take_child(Frame& frame, TokenTrie::NodeId& child);
  void visit(Frame& frame, TokenTrie::NodeId child);
  void add(std::span<const TokenTrie::Entry> entries);
  void remove_dead(const Place& place, const Frame& frame);
  void remove(std::span<const TokenTrie::Entry> entries);
  bool is_known(const ByteStates::Run& run, CharacterClasses classes, CharacterClasses prefix,
                std::uint32_t num_characters) const;
  bool is_taken_whole(const ByteStates::Run& run, CharacterClasses classes, std::uint32_t num_characters);
  void add_base_and_tokens();
  std::shared_ptr<const Remainders> remainders_behind_ends();

  const Vocabulary& vocabulary_;
  ByteStates& states_;
  bool keeps_all_ends_ = false;
  Base base_;
  Walk walk_;
  std::vector<Frame> frames_;
  std::vector<Place> ends_;
};

}  // namespace kvasir::grammar
