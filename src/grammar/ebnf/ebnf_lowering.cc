#include "grammar/ebnf/ebnf_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <string_view>

#include "grammar/ir/text_dispatch.h"
#include "grammar/regex/pattern.h"

namespace kvasir::grammar {
namespace {

// Calls visit(rule) for every rule that the node names.
template <typename Visit>
void for_each_rule(const EbnfGrammar& grammar, const EbnfNode& node, const Visit& visit) {
  if (node.kind == EbnfNode::Kind::kRule) visit(node.value);
  if (node.kind == EbnfNode::Kind::kDispatch) {
    for (const auto& [mark, rule] : grammar.dispatches[node.value].triggers) visit(rule);
  }
  for (const EbnfNode& child : node.children) for_each_rule(grammar, child, visit);
}

std::size_t num_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

}  // namespace

EbnfLowering::EbnfLowering(const EbnfGrammar& grammar, GrammarBuilder& builder, TermStore& store,
                           Derivatives& derivatives)
    : grammar_(grammar),
      builder_(builder),
      store_(store),
      derivatives_(derivatives),
      users_(grammar.rules.size()),
      fused_(grammar.rules.size()),
      lengths_(grammar.rules.size(), kTooLong),
      is_nullable_(grammar.rules.size()) {
  for (EbnfRuleId rule = 0; rule < grammar_.rules.size(); ++rule) {
    for_each_rule(grammar_, grammar_.rules[rule].body, [&](EbnfRuleId used) {
      if (users_[used].empty() || users_[used].back() != rule) users_[used].push_back(rule);
    });
  }
}

std::size_t EbnfLowering::length(const EbnfNode& node) const {
  std::size_t sum = 1;
  switch (node.kind) {
    case EbnfNode::Kind::kLiteral:
      return std::min(num_characters(node.text), kTooLong);
    case EbnfNode::Kind::kSet:
      return 1;
    case EbnfNode::Kind::kPattern:
      return std::min(node.text.size(), kMaxLength);
    case EbnfNode::Kind::kRule:
      return lengths_[node.value];
    case EbnfNode::Kind::kTokens:
    case EbnfNode::Kind::kDispatch:
      return kTooLong;
    case EbnfNode::Kind::kRepeat:
      if (node.min == 0) sum = kRepeatLength;
      [[fallthrough]];
    case EbnfNode::Kind::kSequence:
    case EbnfNode::Kind::kChoice:
      for (const EbnfNode& child : node.children) {
        sum += length(child);
        if (sum >= kTooLong) return kTooLong;
      }
      return sum;
  }
  return kTooLong;
}

TermId EbnfLowering::plain(const EbnfNode& node) {
  std::vector<TermId> children;
  switch (node.kind) {
    case EbnfNode::Kind::kLiteral:
      return store_.literal(node.text);
    case EbnfNode::Kind::kSet:
      return store_.char_class(node.set);
    case EbnfNode::Kind::kPattern:
      return patterns_.at(&node);
    case EbnfNode::Kind::kRule:
      return *fused_[node.value];
    case EbnfNode::Kind::kRepeat:
      return store_.repeat(plain(node.children[0]), node.min, node.max);
    case EbnfNode::Kind::kSequence:
    case EbnfNode::Kind::kChoice:
      for (const EbnfNode& child : node.children) children.push_back(plain(child));
      return node.kind == EbnfNode::Kind::kChoice ? store_.any_of(std::move(children)) : store_.concat(children);
    case EbnfNode::Kind::kTokens:
    case EbnfNode::Kind::kDispatch:
      break;  // have no length
  }
  return kNothing;
}

// In an order in which a rule comes behind those that it names; a rule that never comes is recursive, or names one.
void EbnfLowering::fuse_rules() {
  std::vector<std::size_t> num_missing(grammar_.rules.size());
  for (const std::vector<EbnfRuleId>& users : users_) {
    for (const EbnfRuleId user : users) ++num_missing[user];
  }
  std::vector<EbnfRuleId> ready;
  for (EbnfRuleId rule = 0; rule < grammar_.rules.size(); ++rule) {
    if (num_missing[rule] == 0) ready.push_back(rule);
  }
  while (!ready.empty()) {
    const EbnfRuleId rule = ready.back();
    ready.pop_back();
    const EbnfNode& body = grammar_.rules[rule].body;
    if (const std::size_t characters = length(body); characters <= kMaxLength) {
      fused_[rule] = plain(body);
      lengths_[rule] = std::max<std::size_t>(characters, 1);
    }
    for (const EbnfRuleId user : users_[rule]) {
      if (--num_missing[user] == 0) ready.push_back(user);
    }
  }
}

bool EbnfLowering::is_nullable(const EbnfNode& node) const {
  const auto is_nullable_child = [&](const EbnfNode& child) { return is_nullable(child); };
  switch (node.kind) {
    case EbnfNode::Kind::kLiteral:
      return node.text.empty();
    case EbnfNode::Kind::kSet:
    case EbnfNode::Kind::kTokens:
      return false;
    case EbnfNode::Kind::kPattern:
      return store_.is_nullable(patterns_.at(&node));
    case EbnfNode::Kind::kRule:
      return is_nullable_[node.value];
    case EbnfNode::Kind::kSequence:
      return std::ranges::all_of(node.children, is_nullable_child);
    case EbnfNode::Kind::kChoice:
      return std::ranges::any_of(node.children, is_nullable_child);
    case EbnfNode::Kind::kRepeat:
      return node.min == 0 || is_nullable(node.children[0]);
    case EbnfNode::Kind::kDispatch:
      return true;  // the text may be empty
  }
  return false;
}

// The least fixpoint: whenever a rule may be empty, those that name it are asked again.
void EbnfLowering::find_nullable_rules() {
  std::deque<EbnfRuleId> queue;
  std::vector<bool> is_queued(grammar_.rules.size(), true);
  for (EbnfRuleId rule = 0; rule < grammar_.rules.size(); ++rule) queue.push_back(rule);
  while (!queue.empty()) {
    const EbnfRuleId rule = queue.front();
    queue.pop_front();
    is_queued[rule] = false;
    if (is_nullable_[rule] || !is_nullable(grammar_.rules[rule].body)) continue;
    is_nullable_[rule] = true;
    for (const EbnfRuleId user : users_[rule]) {
      if (!is_nullable_[user] && !is_queued[user]) queue.push_back(user);
      is_queued[user] = true;
    }
  }
}

Status EbnfLowering::read_patterns(const EbnfNode& node) {
  if (node.kind == EbnfNode::Kind::kPattern) {
    auto term = pattern_language(store_, node.text, PatternFit::kWhole);
    if (!term) {
      return make_error(term.error().kind, fmt::format("grammar, line {}: {}", node.value, term.error().message));
    }
    patterns_.emplace(&node, derivatives_.is_alive(*term) ? *term : kNothing);
  }
  for (const EbnfNode& child : node.children) KVASIR_CHECKED(read_patterns(child));
  return {};
}

RuleId EbnfLowering::rule_of(EbnfRuleId rule, Wanted wanted) {
  const auto key = std::pair(rule, wanted);
  if (const auto found = rules_.find(key); found != rules_.end()) return found->second;
  const RuleId id = builder_.declare(grammar_.rules[rule].name);
  rules_.emplace(key, id);
  pending_.push_back(key);
  return id;
}

Result<RuleId> EbnfLowering::lower() {
  for (const EbnfRule& rule : grammar_.rules) KVASIR_CHECKED(read_patterns(rule.body));
  find_nullable_rules();
  fuse_rules();
  const RuleId root = rule_of(grammar_.root, Wanted::kAll);
  while (!pending_.empty()) {
    const auto [rule, wanted] = pending_.back();
    pending_.pop_back();
    builder_.define(rules_.at({rule, wanted}), lower(grammar_.rules[rule].body, wanted));
  }
  if (store_.is_exhausted()) return make_error(ErrorKind::kUnmet, "grammar: it makes too many states");
  return root;
}

Part EbnfLowering::lower(const EbnfNode& node, Wanted wanted) {
  if (length(node) <= kMaxLength) {
    const TermId term = plain(node);
    return builder_.text(wanted == Wanted::kNonEmpty ? store_.without_empty_text(term) : term);
  }
  switch (node.kind) {
    case EbnfNode::Kind::kLiteral:
      return lower_literal(node);
    case EbnfNode::Kind::kSequence:
      return wanted == Wanted::kNonEmpty && is_nullable(node) ? lower_nonempty_sequence(node.children)
                                                              : lower_sequence(node.children);
    case EbnfNode::Kind::kChoice:
      return lower_choice(node, wanted);
    case EbnfNode::Kind::kRepeat:
      return lower_repeat(node, wanted);
    case EbnfNode::Kind::kRule:
      return lower_rule(node.value, wanted);
    case EbnfNode::Kind::kDispatch:
      return lower_dispatch(grammar_.dispatches[node.value], wanted);
    case EbnfNode::Kind::kTokens: {
      std::vector<Part> tokens;
      for (const TokenId token : node.tokens) tokens.push_back(builder_.token(token));
      return builder_.choice(tokens);
    }
    case EbnfNode::Kind::kSet:
    case EbnfNode::Kind::kPattern:
      break;  // are short
  }
  return builder_.text(kNothing);
}

Part EbnfLowering::as_rule(const Part& part) {
  const RuleId rule = builder_.declare({});
  builder_.define(rule, part);
  return builder_.rule(rule);
}

// A long text, in pieces.
Part EbnfLowering::lower_literal(const EbnfNode& node) {
  std::vector<Part> pieces;
  std::string_view rest = node.text;
  while (!rest.empty()) {
    std::size_t size = std::min(rest.size(), kMaxLength);
    while (size < rest.size() && (static_cast<unsigned char>(rest[size]) & 0xC0) == 0x80) ++size;
    pieces.push_back(as_rule(builder_.text(store_.literal(rest.substr(0, size)))));
    rest.remove_prefix(size);
  }
  return builder_.sequence(pieces);
}

std::vector<std::span<const EbnfNode>> EbnfLowering::pieces_of(std::span<const EbnfNode> children) const {
  std::vector<std::span<const EbnfNode>> pieces;
  std::size_t run_length = kTooLong;  // of the last piece; kTooLong: nothing joins it
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::size_t characters = length(children[i]);
    if (run_length + characters <= kMaxLength) {
      pieces.back() = children.subspan(i + 1 - pieces.back().size() - 1, pieces.back().size() + 1);
      run_length += characters;
    } else {
      pieces.push_back(children.subspan(i, 1));
      run_length = characters;
    }
  }
  return pieces;
}

Part EbnfLowering::lower_piece(std::span<const EbnfNode> piece, Wanted wanted) {
  if (piece.size() == 1) return lower(piece[0], wanted);
  std::vector<TermId> terms;
  for (const EbnfNode& node : piece) terms.push_back(plain(node));
  const TermId term = store_.concat(terms);
  return builder_.text(wanted == Wanted::kNonEmpty ? store_.without_empty_text(term) : term);
}

// A piece that another one could make too long is a rule.
Part EbnfLowering::lower_sequence(std::span<const EbnfNode> children) {
  std::vector<Part> parts;
  for (const std::span<const EbnfNode> piece : pieces_of(children)) {
    const Part part = lower_piece(piece, Wanted::kAll);
    const bool joins = !parts.empty() && part.kind == Part::Kind::kTerminal && parts.back().kind == Part::Kind::kTerminal;
    parts.push_back(joins ? as_rule(part) : part);
  }
  return builder_.sequence(parts);
}

// Of abc, where each may be empty: a that is not, then bc; or b that is not, then c; or c that is not. What follows is
// a rule, so that all is as long as the sequence.
Part EbnfLowering::lower_nonempty_sequence(std::span<const EbnfNode> children) {
  const std::vector<std::span<const EbnfNode>> pieces = pieces_of(children);
  std::vector<Part> branches;
  Part rest = builder_.text(kEmptyText);
  for (std::size_t i = pieces.size(); i-- > 0;) {
    branches.push_back(builder_.sequence(std::array{lower_piece(pieces[i], Wanted::kNonEmpty), rest}));
    if (i > 0) rest = as_rule(builder_.sequence(std::array{lower_piece(pieces[i], Wanted::kAll), rest}));
  }
  return builder_.choice(branches);
}

Part EbnfLowering::lower_choice(const EbnfNode& node, Wanted wanted) {
  std::vector<Part> parts;
  std::vector<std::string_view> words;  // cost nothing but their letters
  for (const EbnfNode& child : node.children) {
    const bool is_word = child.kind == EbnfNode::Kind::kLiteral && length(child) <= kMaxLength;
    if (is_word && !(wanted == Wanted::kNonEmpty && child.text.empty())) words.push_back(child.text);
    if (!is_word) parts.push_back(lower(child, wanted));
  }
  if (!words.empty()) parts.push_back(builder_.text(store_.literals(std::move(words))));
  return builder_.choice(parts);
}

Part EbnfLowering::lower_repeat(const EbnfNode& node, Wanted wanted) {
  const EbnfNode& child = node.children[0];
  if (node.max == 0) return builder_.text(wanted == Wanted::kNonEmpty ? kNothing : kEmptyText);
  const bool may_be_empty = is_nullable(child);
  std::uint32_t min = may_be_empty ? 0 : node.min;
  if (wanted == Wanted::kNonEmpty) min = std::max<std::uint32_t>(min, 1);
  const Part part = lower(child, may_be_empty ? Wanted::kNonEmpty : Wanted::kAll);
  if (min == 1 && node.max == 1) return part;
  if (min == 0 && node.max == 1) return builder_.choice(std::array{part, builder_.text(kEmptyText)});
  return builder_.repeat(part, min, node.max);
}

Part EbnfLowering::lower_rule(EbnfRuleId rule, Wanted wanted) {
  return builder_.rule(rule_of(rule, is_nullable_[rule] ? wanted : Wanted::kAll));
}

Part EbnfLowering::lower_dispatch(const EbnfDispatch& dispatch, Wanted wanted) {
  TextDispatch spec = {.triggers = {},
                       .excludes = dispatch.excludes,
                       .ends = {},
                       .loops = dispatch.loops,
                       .is_nonempty = wanted == Wanted::kNonEmpty};
  for (const auto& [mark, rule] : dispatch.triggers) {
    const Part behind = fused_[rule] ? builder_.text(*fused_[rule]) : lower_rule(rule, Wanted::kAll);
    spec.triggers.push_back({.mark = mark, .behind = behind});
  }
  return text_dispatch(builder_, store_, derivatives_, spec);
}

}  // namespace kvasir::grammar
