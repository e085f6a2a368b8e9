#include "grammar/ebnf/ebnf_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "grammar/ebnf/ebnf_characters.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxGrammarBytes = 256 << 10;
constexpr std::size_t kMaxEbnfRules = 10'000;
constexpr std::size_t kMaxOptionsCharacters = 256;
constexpr int kMaxCounts = 4;  // one behind the other

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

bool EbnfParser::is_name_start(char32_t c) const {
  return is_letter(c) || c == '-' || c == '_' || (is_xgrammar() ? c == '.' : is_digit(c));
}

bool EbnfParser::is_name_character(char32_t c) const { return is_name_start(c) || is_digit(c); }

std::string EbnfParser::read_name() {
  std::string name;
  while (is_name_character(in_.peek())) name.push_back(static_cast<char>(in_.next()));
  return name;
}

EbnfRuleId EbnfParser::rule_of(const std::string& name, std::size_t position) {
  const auto [found, is_new] = ids_.try_emplace(name, static_cast<EbnfRuleId>(grammar_.rules.size()));
  if (is_new) {
    grammar_.rules.push_back({.name = name, .body = {}});
    used_at_.push_back(position);
    defined_at_.push_back(kNowhere);
  }
  return found->second;
}

Result<EbnfGrammar> EbnfParser::parse_all(std::string_view root) {
  in_.skip_blanks(/*with_lines=*/true);
  while (!in_.at_end()) KVASIR_CHECKED(parse_rule());
  for (EbnfRuleId rule = 0; rule < grammar_.rules.size(); ++rule) {
    if (defined_at_[rule] != kNowhere) continue;
    return in_.fail_at(used_at_[rule], fmt::format("there is no rule '{}'", printable(grammar_.rules[rule].name, 60)));
  }
  const auto found = ids_.find(root);
  if (found == ids_.end()) {
    return make_error(ErrorKind::kUsage, fmt::format("grammar: there is no rule '{}', where it begins", root));
  }
  grammar_.root = found->second;
  return std::move(grammar_);
}

Status EbnfParser::parse_rule() {
  const std::size_t begin = in_.position();
  if (!is_name_start(in_.peek())) return in_.fail("here a rule's name is expected");
  const std::string name = read_name();
  if (is_xgrammar() && !in_.is_first_in_line(begin)) {
    return in_.fail_at(begin, "a rule's name has to be the first of its line");
  }
  const EbnfRuleId rule = rule_of(name, begin);
  if (defined_at_[rule] != kNowhere) {
    return in_.fail_at(begin, fmt::format("the rule '{}' is there already, in line {}", printable(name, 60),
                                          in_.line_of(defined_at_[rule])));
  }
  if (grammar_.rules.size() > kMaxEbnfRules) {
    return in_.fail_at(begin, fmt::format("there are more than {} rules", kMaxEbnfRules));
  }
  defined_at_[rule] = begin;
  if (is_xgrammar()) KVASIR_CHECKED(skip_options());
  in_.skip_blanks(is_xgrammar());
  if (!in_.take(U"::=")) return in_.fail(fmt::format("behind the name '{}' ::= is expected", printable(name, 60)));
  in_.skip_blanks(/*with_lines=*/true);
  KVASIR_TRY(grammar_.rules[rule].body, parse_alternatives());
  if (is_xgrammar()) KVASIR_CHECKED(skip_lookahead());
  if (!in_.at_end() && in_.peek() != '\n' && in_.peek() != '\r' && !(is_xgrammar() && is_rule_start())) {
    return in_.fail("here the rule's end is expected");
  }
  in_.skip_blanks(/*with_lines=*/true);
  return {};
}

// XGrammar's name[capture="x"]; captures do not change what may follow.
Status EbnfParser::skip_options() {
  if (!in_.take(U'[')) return {};
  do {
    in_.skip_blanks(/*with_lines=*/false);
    const std::size_t begin = in_.position();
    const std::string option = read_name();
    if (option != "capture") {
      return in_.fail_at(begin, fmt::format("the rule option '{}' is not supported", printable(option, 60)),
                         ErrorKind::kUnmet);
    }
    in_.skip_blanks(/*with_lines=*/false);
    if (in_.take(U'=')) {
      in_.skip_blanks(/*with_lines=*/false);
      KVASIR_CHECKED(parse_string());
    }
    in_.skip_blanks(/*with_lines=*/false);
  } while (in_.take(U','));
  return expect(U']');
}

// Whether the name of another rule comes. Line ends do not tell in XGrammar's dialect.
bool EbnfParser::is_rule_start() {
  const std::size_t begin = in_.position();
  if (!is_name_start(in_.peek())) return false;
  read_name();
  if (in_.peek() == '[') {
    std::size_t length = 1;
    while (length < kMaxOptionsCharacters && in_.peek(length) != ']' && in_.peek(length) != '\n') ++length;
    if (in_.peek(length) == ']') in_.go_to(in_.position() + length + 1);
  }
  in_.skip_blanks(/*with_lines=*/true);
  const bool result = in_.take(U"::=");
  in_.go_to(begin);
  return result;
}

// XGrammar's (= ...) at the end of a rule: what follows it anyway, and helps its compiler.
Status EbnfParser::skip_lookahead() {
  if (!in_.take(U"(=")) return {};
  ++depth_;
  skip_blanks();
  KVASIR_TRY(const EbnfNode ignored, parse_alternatives());
  --depth_;
  KVASIR_CHECKED(expect(U')'));
  in_.skip_blanks(/*with_lines=*/true);
  return {};
}

Result<EbnfNode> EbnfParser::parse_alternatives() {
  EbnfNode choice = {.kind = EbnfNode::Kind::kChoice};
  do {
    if (!choice.children.empty()) in_.skip_blanks(/*with_lines=*/true);
    KVASIR_TRY(EbnfNode branch, parse_sequence());
    choice.children.push_back(std::move(branch));
  } while (in_.take(U'|'));
  if (choice.children.size() == 1) {
    EbnfNode only = std::move(choice.children.front());
    return only;
  }
  return choice;
}

Result<EbnfNode> EbnfParser::parse_sequence() {
  EbnfNode sequence = {.kind = EbnfNode::Kind::kSequence};
  while (!in_.at_end()) {
    EbnfNode element;
    KVASIR_TRY(const bool has_element, parse_element(element));
    if (!has_element) break;
    skip_blanks();
    for (int num_counts = 0;; ++num_counts) {
      EbnfNode repeat = {.kind = EbnfNode::Kind::kRepeat};
      const std::size_t begin = in_.position();
      KVASIR_TRY(const bool is_repeated, parse_count(repeat));
      if (!is_repeated) break;
      if (num_counts == (is_xgrammar() ? 1 : kMaxCounts)) {
        return in_.fail_at(begin, "a repetition of a repetition: put the first one into a group");
      }
      repeat.children.push_back(std::move(element));
      element = std::move(repeat);
      skip_blanks();
    }
    sequence.children.push_back(std::move(element));
  }
  if (sequence.children.size() == 1) {
    EbnfNode only = std::move(sequence.children.front());
    return only;
  }
  return sequence;
}

// Whether an element comes.
Result<bool> EbnfParser::parse_element(EbnfNode& element) {
  const char32_t c = in_.peek();
  if (c == '"') {
    in_.next();
    KVASIR_TRY(std::string text, read_ebnf_literal(in_, dialect_));
    element = {.kind = EbnfNode::Kind::kLiteral, .text = std::move(text)};
  } else if (c == '[') {
    in_.next();
    KVASIR_TRY(auto set, read_ebnf_class(in_, dialect_));
    element = {.kind = EbnfNode::Kind::kSet, .set = std::move(set)};
  } else if (c == '(' && !(is_xgrammar() && in_.peek(1) == '=')) {
    KVASIR_TRY(element, parse_group());
  } else if (c == '.' && !is_xgrammar()) {
    in_.next();
    element = {.kind = EbnfNode::Kind::kSet, .set = text::regex::CodePointSet::of(0, kLastCodePoint)};
  } else if ((c == '<' || c == '!') && !is_xgrammar()) {
    KVASIR_TRY(element, parse_token());
  } else if (is_name_start(c)) {
    if (is_xgrammar() && is_rule_start()) return false;
    KVASIR_TRY(element, parse_name());
  } else if (c == '*' || c == '+' || c == '?' || c == '{') {
    return in_.fail("there is nothing to repeat");
  } else {
    return false;
  }
  return true;
}

Result<EbnfNode> EbnfParser::parse_group() {
  const std::size_t begin = in_.position();
  in_.next();
  if (++depth_ > kMaxDepth) return in_.fail_at(begin, fmt::format("groups are nested more than {} deep", kMaxDepth));
  skip_blanks();
  KVASIR_TRY(EbnfNode inside, parse_alternatives());
  --depth_;
  if (!in_.take(U')')) {
    return in_.at_end() ? in_.fail_at(begin, "a group has no end") : in_.fail("here the group's end is expected");
  }
  return inside;
}

Result<EbnfNode> EbnfParser::parse_name() {
  const std::size_t begin = in_.position();
  const std::string name = read_name();
  if (is_xgrammar() && in_.peek() == '(') {
    constexpr std::string_view kMacros[] = {"Regex", "Token", "ExcludeToken", "TagDispatch", "TokenTagDispatch",
                                            "Substring"};
    if (std::ranges::find(kMacros, name) != std::end(kMacros)) return parse_macro(name, begin);
  }
  return EbnfNode{.kind = EbnfNode::Kind::kRule, .value = rule_of(name, begin)};
}

// Whether a count comes.
Result<bool> EbnfParser::parse_count(EbnfNode& repeat) {
  const std::size_t begin = in_.position();
  if (in_.take(U'?')) {
    repeat.max = 1;
  } else if (in_.take(U'+')) {
    repeat.min = 1;
  } else if (!in_.take(U'*')) {
    if (!in_.take(U'{')) return false;
    skip_blanks();
    KVASIR_TRY(repeat.min, parse_number());
    repeat.max = repeat.min;
    skip_blanks();
    if (in_.take(U',')) {
      skip_blanks();
      repeat.max = kUnbounded;
      if (!(is_xgrammar() && in_.take(U"-1")) && in_.peek() != '}') {
        KVASIR_TRY(repeat.max, parse_number());
      }
      skip_blanks();
    }
    if (!in_.take(U'}')) return in_.fail("here } is expected");
    if (repeat.min > repeat.max) return in_.fail_at(begin, "a repetition has its limits turned round");
  }
  return true;
}

Result<std::uint32_t> EbnfParser::parse_number() {
  const std::size_t begin = in_.position();
  if (!is_digit(in_.peek())) return in_.fail("here a number is expected");
  std::uint32_t number = 0;
  while (is_digit(in_.peek())) {
    number = std::min(number * 10 + static_cast<std::uint32_t>(in_.next() - '0'), kMaxRepeat + 1);
  }
  if (number > kMaxRepeat) return in_.fail_at(begin, fmt::format("a repetition of more than {}", kMaxRepeat));
  return number;
}

Status EbnfParser::expect(char32_t wanted) {
  if (!in_.take(wanted)) return in_.fail(fmt::format("here {} is expected", static_cast<char>(wanted)));
  return {};
}

Result<EbnfGrammar> parse_ebnf(std::string_view text, EbnfDialect dialect, std::string_view root,
                               const TokenNames& tokens) {
  if (text.size() > kMaxGrammarBytes) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("grammar: {} bytes (at most {})", text.size(), kMaxGrammarBytes));
  }
  if (!is_valid_utf8(text)) return make_error(ErrorKind::kUsage, "grammar: the text is not UTF-8");
  if (text.find("::=") == std::string_view::npos) {
    return make_error(ErrorKind::kUsage,
                      "grammar: no rule has the form 'name ::= ...'; Lark's notation (name: ...) is not supported");
  }
  return EbnfParser(text, dialect, tokens).parse_all(root);
}

}  // namespace kvasir::grammar
