#include "grammar/match/matcher.h"

#include <algorithm>

namespace kvasir::grammar {

void GrammarMatcher::reserve(std::size_t num_tokens) {
  configs_.reserve(num_tokens + 1);
  if (!grammar_->has_records()) return;
  states_.reserve(num_tokens);
  seen_.reserve(num_tokens);
}

void GrammarMatcher::rollback_to(std::size_t num_configs) const {
  if (grammar_->has_records() && num_configs < configs_.size()) {
    seen_.restore(states_[num_configs - 1]);
    states_.resize(num_configs - 1);
  }
  configs_.resize(num_configs);
}

// Where the token leads, with its texts recorded; those that are there already are refused. kNoConfig: nowhere, and
// texts are recorded up to there.
ConfigId GrammarMatcher::replay(ConfigId from, TokenId token) const {
  const SeenTexts::State before = seen_.state();
  const std::string_view text = grammar_->vocabulary(from).text(token);
  ConfigId next = grammar_->advance(from, token, events_);
  refused_.clear();
  while (next != kNoConfig) {
    std::uint32_t offset = 0;
    bool is_refused = false;
    const auto append_to = [&](std::uint32_t end) {
      if (seen_.has_text()) seen_.append(text.substr(offset, end - offset));
      offset = end;
    };
    for (const TextEvent& event : events_) {
      const bool is_behind = event.kind == TextEvent::Kind::kOpen || event.kind == TextEvent::Kind::kClose;
      append_to(event.offset + (is_behind ? 1 : 0));
      if (event.kind == TextEvent::Kind::kOpen) seen_.open();
      if (event.kind == TextEvent::Kind::kClose) seen_.close();
      if (event.kind == TextEvent::Kind::kBegin) seen_.begin(event.mark);
      if (event.kind != TextEvent::Kind::kCommit || seen_.commit()) continue;
      is_refused = true;
      refused_.push_back(event.offset);
      break;
    }
    if (!is_refused) {
      append_to(static_cast<std::uint32_t>(text.size()));
      return next;
    }
    seen_.restore(before);
    next = grammar_->advance_without(from, token, refused_, events_);
  }
  return kNoConfig;
}

// Without places in the text at hand from where only recorded texts can be reached.
ConfigId GrammarMatcher::without_taken(ConfigId config) const {
  if (!grammar_->is_recording(config)) {
    seen_.drop();
    return config;
  }
  if (!seen_.has_text() || seen_.is_empty() || !grammar_->may_be_taken(config)) return config;
  rests_.clear();
  const std::string_view text = seen_.text();
  seen_.for_each(seen_.mark().num_levels(), seen_.mark().group, [&](std::string_view other) {
    if (other.starts_with(text)) rests_.push_back(other.substr(text.size()));
  });
  return rests_.empty() ? config : grammar_->without(config, rests_);
}

bool GrammarMatcher::accept_recording(TokenId token) const {
  const SeenTexts::State before = seen_.state();
  ConfigId next = replay(configs_.back(), token);
  if (next != kNoConfig) next = without_taken(next);
  if (next == kNoConfig) {
    seen_.restore(before);
    return false;
  }
  configs_.push_back(next);
  states_.push_back(before);
  return true;
}

void GrammarMatcher::add_if_taken(TokenId token) const {
  if (grammar_->advance(configs_.back(), token) == kNoConfig) return;
  if (accept_recording(token)) {
    rollback_to(configs_.size() - 1);
  } else {
    taken_.push_back(token);
  }
}

// Into doubtful_: tokens that end the text with `rest`, or where it would have to end so.
void GrammarMatcher::find_doubtful(const TokenTrie& trie, TokenTrie::NodeId top, const RecordedTerminal& terminal,
                                   std::string_view rest) const {
  const auto add = [&](std::span<const TokenTrie::Entry> entries) {
    for (const TokenTrie::Entry& entry : entries) doubtful_.push_back(entry.token);
  };
  TokenTrie::NodeId node = top;
  for (const char c : rest) {
    const auto byte = static_cast<unsigned char>(c);
    if (terminal.mark.may_run_out && node != top) add(trie.entries_at(node));
    node = trie.child(node, byte);
    if (node == TokenTrie::kNoNode) return;
  }
  add(trie.entries_within(node));
}

void GrammarMatcher::find_doubtful(const RecordedTerminal& terminal, std::string_view rest) const {
  const Remainders& remainders = *terminal.remainders;
  for (const TokenTrie::NodeId top : remainders.tops) {
    find_doubtful(grammar_->vocabulary(configs_.back()).trie(), top, terminal, rest);
  }
  if (remainders.merged) find_doubtful(*remainders.merged, 0, terminal, rest);
}

// Into taken_: the tokens of the grammar's mask that recorded texts rule out. Tokens are tried when all texts have been
// looked at, for a token that is tried moves them.
void GrammarMatcher::find_taken(const RecordedTerminals& recorded) const {
  taken_.clear();
  doubtful_.assign(recorded.doubtful.begin(), recorded.doubtful.end());
  if (!seen_.is_empty()) {
    for (const RecordedTerminal& terminal : recorded.terminals) {
      const std::string_view begin = terminal.has_begun ? seen_.text() : std::string_view();
      seen_.for_each(terminal.num_closed, terminal.mark.group, [&](std::string_view other) {
        if (other.size() > begin.size() && other.starts_with(begin)) find_doubtful(terminal, other.substr(begin.size()));
      });
    }
  }
  std::ranges::sort(doubtful_);
  doubtful_.erase(std::ranges::unique(doubtful_).begin(), doubtful_.end());
  for (const TokenId token : doubtful_) add_if_taken(token);
}

void GrammarMatcher::fill(TokenMask& mask) const {
  if (!grammar_->has_records()) return grammar_->fill(configs_.back(), mask);
  find_taken(grammar_->fill(configs_.back(), mask, recorded_));
  for (const TokenId token : taken_) mask.reset(token);
}

CompiledGrammar::Choices GrammarMatcher::choices() const {
  CompiledGrammar::Choices choices = grammar_->choices(configs_.back());
  if (!grammar_->has_records() || choices.count == 0) return choices;
  find_taken(grammar_->recorded_terminals(configs_.back(), recorded_));
  if (taken_.empty()) return choices;
  choices = {.count = choices.count - static_cast<std::int32_t>(taken_.size())};
  if (choices.count != 1) return choices;
  TokenMask mask(grammar_->vocabulary().num_tokens());
  fill(mask);
  choices.only = mask.only();
  return choices;
}

std::size_t GrammarMatcher::forced(std::span<TokenId> tokens) const {
  const std::size_t num_configs = configs_.size();
  std::size_t num_forced = 0;
  while (num_forced < tokens.size() && !is_accepting()) {
    const TokenId only = choices().only;
    if (only == kNoToken) break;
    tokens[num_forced++] = only;
    if (grammar_->has_records()) {
      if (!accept_recording(only)) break;
    } else {
      configs_.push_back(grammar_->advance(configs_.back(), only));
    }
  }
  rollback_to(num_configs);
  return num_forced;
}

// The mask behind a node, by way of the nodes before it.
void GrammarMatcher::fill_node(std::span<const DraftNode> nodes, std::size_t place, TokenMask& mask) {
  const std::size_t num_configs = configs_.size();
  way_.clear();
  for (auto at = static_cast<std::int32_t>(place); at >= 0; at = nodes[static_cast<std::size_t>(at)].parent) {
    way_.push_back(nodes[static_cast<std::size_t>(at)].token);
  }
  for (; !way_.empty(); way_.pop_back()) {
    if (!accept(way_.back())) break;
  }
  tree_[place] = way_.empty() ? configs_.back() : kNoConfig;
  if (way_.empty()) {
    fill(mask);
  } else {
    mask.clear();
  }
  rollback_to(num_configs);
}

bool GrammarMatcher::fill_tree(std::span<const DraftNode> nodes, std::span<TokenMask> masks) {
  bool is_allowed = true;
  tree_.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int32_t parent = nodes[i].parent;
    const ConfigId from = parent < 0 ? configs_.back() : tree_[static_cast<std::size_t>(parent)];
    if (grammar_->has_records()) {
      fill_node(nodes, i, masks[i]);
    } else {
      tree_[i] = from == kNoConfig ? kNoConfig : grammar_->advance(from, nodes[i].token);
      if (tree_[i] != kNoConfig) grammar_->fill(tree_[i], masks[i]);
    }
    if (tree_[i] != kNoConfig) continue;
    is_allowed = false;
    masks[i].clear();
  }
  return is_allowed;
}

}  // namespace kvasir::grammar
