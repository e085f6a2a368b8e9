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

namespace kvasir::grammar {

// A stack of places, one for each token. Copies are forks: they share the grammar.
//
// Thread safety: none for one matcher; copies may live on other threads.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar)
      : grammar_(std::move(grammar)), configs_({grammar_->start()}) {}

  // Whether the token may follow; if not, nothing changes.
  bool accept(TokenId token) {
    const ConfigId next = grammar_->advance(configs_.back(), token);
    if (next == kNoConfig) return false;
    configs_.push_back(next);
    return true;
  }

  // Forgets the last tokens. Requires: 0 <= num_tokens <= num_accepted().
  void rollback(std::size_t num_tokens) { configs_.resize(configs_.size() - num_tokens); }
  std::size_t num_accepted() const { return configs_.size() - 1; }

  // Replaces the mask by the tokens that may follow. Requires: a mask of the vocabulary's size.
  void fill(TokenMask& mask) const { grammar_->fill(configs_.back(), mask); }
  // Writes the tokens that may follow one after the other with no choice; how many fit.
  std::size_t forced(std::span<TokenId> tokens) const;
  bool is_accepting() const { return grammar_->is_accepting(configs_.back()); }
  bool must_end() const { return grammar_->must_end(configs_.back()); }

  friend bool operator==(const GrammarMatcher& a, const GrammarMatcher& b) {
    return a.grammar_ == b.grammar_ && a.configs_.back() == b.configs_.back();
  }

 private:
  std::shared_ptr<const CompiledGrammar> grammar_;
  std::vector<ConfigId> configs_;
};

}  // namespace kvasir::grammar
