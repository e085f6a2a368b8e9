// The parts of grammars that name tokens or call macros.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/code_point.h"
#include "base/printable.h"
#include "grammar/ebnf/ebnf_characters.h"
#include "grammar/ebnf/ebnf_parser.h"

namespace kvasir::grammar {

Result<TokenId> EbnfParser::checked_token(std::uint64_t id, std::size_t position) const {
  if (id < static_cast<std::uint64_t>(tokens_.num_tokens)) return static_cast<TokenId>(id);
  return in_.fail_at(position, fmt::format("the token {} is not in the vocabulary of {} tokens", id,
                                           tokens_.num_tokens));
}

Result<std::vector<TokenId>> EbnfParser::others_of(const std::vector<TokenId>& tokens, std::size_t position) {
  if (!tokens_.has_text) {
    return in_.fail_at(position, "a token that is none of some: it is not known which tokens have text",
                       ErrorKind::kUnmet);
  }
  std::vector<TokenId> others = other_tokens(tokens_, tokens);
  num_other_tokens_ += others.size();
  if (num_other_tokens_ > kMaxOtherTokens) {
    return in_.fail_at(position, fmt::format("the tokens that are none of some are more than {} together",
                                             kMaxOtherTokens), ErrorKind::kUnmet);
  }
  return others;
}

// Digits: the id of a token.
Result<TokenId> EbnfParser::parse_token_id() {
  constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 32;
  const std::size_t begin = in_.position();
  std::uint64_t id = 0;
  while (in_.peek() >= '0' && in_.peek() <= '9') id = std::min(id * 10 + (in_.next() - '0'), kTooLarge);
  if (in_.position() == begin) return in_.fail("here a token's id is expected");
  return checked_token(id, begin);
}

Result<EbnfNode> EbnfParser::parse_token() {
  EbnfNode node = {.kind = EbnfNode::Kind::kTokens};
  const bool is_negated = in_.take(U'!');
  const std::size_t begin = in_.position();
  KVASIR_CHECKED(expect(U'<'));
  if (in_.take(U'[')) {
    KVASIR_TRY(const TokenId id, parse_token_id());
    if (!in_.take(U"]>")) return in_.fail("here ]> is expected");
    node.tokens.push_back(id);
  } else {
    std::string name = "<";
    while (!in_.at_end() && in_.peek() != '>') append_utf8(name, in_.next());
    if (in_.at_end()) return in_.fail_at(begin, "a token's name has no end");
    in_.next();
    name += '>';
    const std::optional<TokenId> id = tokens_.find ? tokens_.find(name) : std::nullopt;
    if (!id) return in_.fail_at(begin, fmt::format("'{}' is not one token of the vocabulary", printable(name, 60)));
    node.tokens.push_back(*id);
  }
  if (is_negated) {
    KVASIR_TRY(node.tokens, others_of(node.tokens, begin));
  }
  return node;
}

Result<EbnfNode> EbnfParser::parse_macro(std::string_view name, std::size_t position) {
  ++depth_;
  in_.next();
  skip_blanks();
  Result<EbnfNode> node = EbnfNode{};
  if (name == "Regex") {
    node = parse_regex_macro(position);
  } else if (name == "Token" || name == "ExcludeToken") {
    node = parse_token_macro(/*is_negated=*/name == "ExcludeToken");
  } else if (name == "TagDispatch") {
    node = parse_dispatch_macro(position);
  } else {
    return in_.fail_at(position, fmt::format("the macro '{}' is not supported", name), ErrorKind::kUnmet);
  }
  --depth_;
  return node;
}

Result<std::string> EbnfParser::parse_string() {
  KVASIR_CHECKED(expect(U'"'));
  return read_ebnf_literal(in_, dialect_);
}

Result<bool> EbnfParser::parse_bool() {
  const std::size_t begin = in_.position();
  const std::string word = read_name();
  if (word != "true" && word != "false") return in_.fail_at(begin, "here true or false is expected");
  return word == "true";
}

// Regex("...", json_string=false)
Result<EbnfNode> EbnfParser::parse_regex_macro(std::size_t position) {
  KVASIR_TRY(std::string pattern, parse_string());
  skip_blanks();
  while (in_.take(U',')) {
    skip_blanks();
    const std::size_t begin = in_.position();
    const std::string option = read_name();
    skip_blanks();
    KVASIR_CHECKED(expect(U'='));
    skip_blanks();
    if (option != "json_string") {
      return in_.fail_at(begin, fmt::format("Regex's option '{}' is not supported", printable(option, 60)),
                         ErrorKind::kUnmet);
    }
    KVASIR_TRY(const bool is_json, parse_bool());
    if (is_json) return in_.fail_at(begin, "Regex's json_string=true is not supported", ErrorKind::kUnmet);
    skip_blanks();
  }
  KVASIR_CHECKED(expect(U')'));
  return EbnfNode{.kind = EbnfNode::Kind::kPattern,
                  .value = static_cast<std::uint32_t>(in_.line_of(position)),
                  .text = std::move(pattern)};
}

// Token(1, 2), ExcludeToken(1)
Result<EbnfNode> EbnfParser::parse_token_macro(bool is_negated) {
  EbnfNode node = {.kind = EbnfNode::Kind::kTokens};
  const std::size_t begin = in_.position();
  do {
    skip_blanks();
    KVASIR_TRY(const TokenId id, parse_token_id());
    node.tokens.push_back(id);
    skip_blanks();
  } while (in_.take(U','));
  KVASIR_CHECKED(expect(U')'));
  std::ranges::sort(node.tokens);
  node.tokens.erase(std::ranges::unique(node.tokens).begin(), node.tokens.end());
  if (is_negated) {
    KVASIR_TRY(node.tokens, others_of(node.tokens, begin));
  }
  return node;
}

// TagDispatch(("trigger", rule), loop_after_dispatch=true, excludes=("a", "b"))
Result<EbnfNode> EbnfParser::parse_dispatch_macro(std::size_t position) {
  EbnfDispatch dispatch;
  while (!in_.take(U')')) {
    if (in_.take(U'(')) {
      skip_blanks();
      const std::size_t begin = in_.position();
      KVASIR_TRY(std::string trigger, parse_string());
      if (trigger.empty()) return in_.fail_at(begin, "a trigger is empty");
      skip_blanks();
      KVASIR_CHECKED(expect(U','));
      skip_blanks();
      const std::size_t name_begin = in_.position();
      if (!is_name_start(in_.peek())) return in_.fail("here a rule's name is expected");
      const std::string name = read_name();
      skip_blanks();
      if (in_.take(U',')) skip_blanks();
      KVASIR_CHECKED(expect(U')'));
      dispatch.triggers.emplace_back(std::move(trigger), rule_of(name, name_begin));
    } else {
      KVASIR_CHECKED(parse_dispatch_option(dispatch, position));
    }
    skip_blanks();
    if (in_.peek() != ')') KVASIR_CHECKED(expect(U','));
    skip_blanks();
  }
  grammar_.dispatches.push_back(std::move(dispatch));
  return EbnfNode{.kind = EbnfNode::Kind::kDispatch,
                  .value = static_cast<std::uint32_t>(grammar_.dispatches.size() - 1)};
}

Status EbnfParser::parse_dispatch_option(EbnfDispatch& dispatch, std::size_t position) {
  const std::size_t begin = in_.position();
  const std::string option = read_name();
  skip_blanks();
  if (in_.at_end()) return in_.fail_at(position, "a macro has no end");
  KVASIR_CHECKED(expect(U'='));
  skip_blanks();
  if (option == "loop_after_dispatch") {
    KVASIR_TRY(dispatch.loops, parse_bool());
    return {};
  }
  if (option != "excludes") {
    return in_.fail_at(begin, fmt::format("TagDispatch has no option '{}'", printable(option, 60)));
  }
  KVASIR_CHECKED(expect(U'('));
  skip_blanks();
  while (!in_.take(U')')) {
    const std::size_t at = in_.position();
    KVASIR_TRY(std::string excluded, parse_string());
    if (excluded.empty()) return in_.fail_at(at, "an excluded text is empty");
    dispatch.excludes.push_back(std::move(excluded));
    skip_blanks();
    if (in_.peek() != ')') KVASIR_CHECKED(expect(U','));
    skip_blanks();
  }
  return {};
}

}  // namespace kvasir::grammar
