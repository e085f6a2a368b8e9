// Rules of a grammar, from its text.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/ebnf/ebnf_reader.h"
#include "grammar/ebnf/ebnf_syntax.h"

namespace kvasir::grammar {

// Thread safety: none.
class EbnfParser {
 public:
  // The token names outlive this. Requires: well-formed UTF-8.
  EbnfParser(std::string_view text, EbnfDialect dialect, const TokenNames& tokens)
      : in_(text), dialect_(dialect), tokens_(tokens) {}

  Result<EbnfGrammar> parse_all(std::string_view root);

 private:
  bool is_xgrammar() const { return dialect_ == EbnfDialect::kXGrammar; }
  // Between the parts of a rule: in GBNF a line's end ends the rule, but inside of a group.
  void skip_blanks() { in_.skip_blanks(is_xgrammar() || depth_ > 0); }

  bool is_name_start(char32_t c) const;
  bool is_name_character(char32_t c) const;
  std::string read_name();
  // Of a rule that is used here.
  EbnfRuleId rule_of(const std::string& name, std::size_t position);

  Status parse_rule();
  Status skip_options();
  bool is_rule_start();
  Status skip_lookahead();

  Result<EbnfNode> parse_alternatives();
  Result<EbnfNode> parse_sequence();
  Result<bool> parse_element(EbnfNode& element);
  Result<EbnfNode> parse_group();
  Result<EbnfNode> parse_name();
  Result<bool> parse_count(EbnfNode& repeat);
  Result<std::uint32_t> parse_number();

  // Tokens of GBNF: <[id]>, <name>, and ! before it.
  Result<EbnfNode> parse_token();
  Result<TokenId> parse_token_id();
  Result<TokenId> checked_token(std::uint64_t id, std::size_t position) const;
  // The tokens with text that are none of these.
  Result<std::vector<TokenId>> others_of(const std::vector<TokenId>& tokens, std::size_t position);

  // Macros of XGrammar, behind their name: Regex, Token, ExcludeToken, TagDispatch.
  Result<EbnfNode> parse_macro(std::string_view name, std::size_t position);
  Result<EbnfNode> parse_regex_macro(std::size_t position);
  Result<EbnfNode> parse_token_macro(bool is_negated);
  Result<EbnfNode> parse_dispatch_macro(std::size_t position);
  Status parse_dispatch_option(EbnfDispatch& dispatch, std::size_t position);
  Result<bool> parse_bool();
  Result<std::string> parse_string();
  Status expect(char32_t wanted);

  static constexpr int kMaxDepth = 64;
  static constexpr std::uint32_t kMaxRepeat = 100'000;

  EbnfReader in_;
  EbnfDialect dialect_;
  const TokenNames& tokens_;
  int depth_ = 0;  // of groups
  std::size_t num_other_tokens_ = 0;
  EbnfGrammar grammar_;
  std::map<std::string, EbnfRuleId, std::less<>> ids_;
  std::vector<std::size_t> used_at_;     // by rule: where it is first used or defined
  std::vector<std::size_t> defined_at_;  // by rule; kNowhere: not yet
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
};

}  // namespace kvasir::grammar
