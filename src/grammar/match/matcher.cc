#include "grammar/match/matcher.h"

namespace kvasir::grammar {

std::size_t GrammarMatcher::forced(std::span<TokenId> tokens) const {
  ConfigId config = configs_.back();
  std::size_t num_forced = 0;
  while (num_forced < tokens.size() && !grammar_->is_accepting(config)) {
    const TokenId only = grammar_->choices(config).only;
    if (only == kNoToken) break;
    tokens[num_forced++] = only;
    config = grammar_->advance(config, only);
  }
  return num_forced;
}

bool GrammarMatcher::fill_tree(std::span<const DraftNode> nodes, std::span<TokenMask> masks) {
  bool is_allowed = true;
  tree_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int32_t parent = nodes[i].parent;
    const ConfigId from = parent < 0 ? configs_.back() : tree_[static_cast<std::size_t>(parent)];
    tree_[i] = from == kNoConfig ? kNoConfig : grammar_->advance(from, nodes[i].token);
    if (tree_[i] == kNoConfig) {
      is_allowed = false;
      masks[i].clear();
    } else {
      grammar_->fill(tree_[i], masks[i]);
    }
  }
  return is_allowed;
}

}  // namespace kvasir::grammar
