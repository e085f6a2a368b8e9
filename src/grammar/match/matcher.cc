#include "grammar/match/matcher.h"

namespace kvasir::grammar {

std::size_t GrammarMatcher::forced(std::span<TokenId> tokens) const {
  TokenMask mask(grammar_->vocabulary().num_tokens());
  ConfigId config = configs_.back();
  std::size_t num_forced = 0;
  while (num_forced < tokens.size() && !grammar_->is_accepting(config)) {
    grammar_->fill(config, mask);
    const TokenId only = mask.only();
    if (only == kNoToken) break;
    tokens[num_forced++] = only;
    config = grammar_->advance(config, only);
  }
  return num_forced;
}

}  // namespace kvasir::grammar
