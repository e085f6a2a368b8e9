// One answer on its way through a grammar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/compile/compiled_grammar.h"
#include "grammar/ir/seen_texts.h"

namespace kvasir::grammar {

// A token of a tree of drafts.
struct DraftNode {
  std::int32_t parent = -1;  // place of the token before; -1: the answer so far
  TokenId token = kNoToken;
};

// A stack of places, one for each token. Copies are forks: they share the grammar. Beside the places stand the texts
// that may not come again (TextMark): a mask is the grammar's, which is remembered, without the tokens that such a text
// rules out.
//
// Thread safety: none for one matcher; copies may live on other threads.
class GrammarMatcher {
 public:
  // at_text_start: the first token begins a text, so that SentencePiece's blank before it is lost.
  explicit GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar, bool at_text_start = false)
      : grammar_(std::move(grammar)), configs_({grammar_->start(at_text_start)}) {}

  const CompiledGrammar& grammar() const { return *grammar_; }

  // Whether the token may follow; if not, nothing changes.
  bool accept(TokenId token) {
    if (grammar_->has_records()) return accept_recording(token);
    const ConfigId next = grammar_->advance(configs_.back(), token);
    if (next == kNoConfig) return false;
    configs_.push_back(next);
    return true;
  }

  // Forgets the last tokens. Requires: 0 <= num_tokens <= num_accepted().
  void rollback(std::size_t num_tokens) { rollback_to(configs_.size() - num_tokens); }
  std::size_t num_accepted() const { return configs_.size() - 1; }
  // Room for so many tokens, so that accepting them allocates nothing.
  void reserve(std::size_t num_tokens);

  // Replaces the mask by the tokens that may follow. Requires: a mask of the vocabulary's size.
  void fill(TokenMask& mask) const;
  // How many tokens may follow, and the only one.
  CompiledGrammar::Choices choices() const;
  // The masks behind the tokens of a tree: masks[i] belongs to nodes[i], and is empty where the way to it is refused.
  // False: some way is. The matcher stays where it is. Requires: parents come before their children; as many masks.
  bool fill_tree(std::span<const DraftNode> nodes, std::span<TokenMask> masks);
  // Writes the tokens that may follow one after the other with no choice; how many fit.
  std::size_t forced(std::span<TokenId> tokens) const;
  bool is_accepting() const { return grammar_->is_accepting(configs_.back()); }
  bool must_end() const { return grammar_->must_end(configs_.back()); }
  // The answer cannot go on: it is one in too many ways, or the grammar passed a limit of states.
  bool is_exhausted() const { return is_ambiguous() || grammar_->is_exhausted(); }
  // .. and CompiledGrammar::renewed() would not help.
  bool is_ambiguous() const { return grammar_->is_ambiguous(configs_.back()); }

  friend bool operator==(const GrammarMatcher& a, const GrammarMatcher& b) {
    return a.grammar_ == b.grammar_ && a.configs_.back() == b.configs_.back() && a.seen_ == b.seen_;
  }

 private:
  bool accept_recording(TokenId token) const;
  ConfigId replay(ConfigId from, TokenId token) const;
  ConfigId without_taken(ConfigId config) const;
  void rollback_to(std::size_t num_configs) const;
  void find_taken(const RecordedTerminals& recorded) const;
  void find_doubtful(const RecordedTerminal& terminal, std::string_view rest) const;
  void find_doubtful(const TokenTrie& trie, TokenTrie::NodeId top, const RecordedTerminal& terminal,
                  std::string_view rest) const;
  void add_if_taken(TokenId token) const;
  void fill_node(std::span<const DraftNode> nodes, std::size_t place, TokenMask& mask);
  std::shared_ptr<const CompiledGrammar> grammar_;
  // Tokens are tried and taken back, which leaves these as they were.
  mutable std::vector<ConfigId> configs_;
  mutable SeenTexts seen_;
  mutable std::vector<SeenTexts::State> states_;  // before each token, where texts are recorded
  // For the call at hand:
  std::vector<ConfigId> tree_;
  std::vector<TokenId> way_;
  mutable std::vector<TextEvent> events_;
  mutable std::vector<std::uint32_t> refused_;
  mutable std::vector<std::string_view> rests_;
  mutable std::vector<TokenId> doubtful_;  // to be tried
  mutable std::vector<TokenId> taken_;
  mutable RecordedTerminals recorded_;
};

}  // namespace kvasir::grammar
