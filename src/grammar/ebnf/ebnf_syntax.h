// A grammar in extended Backus-Naur form as trees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/term.h"
#include "grammar/token_names.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "text/regex/code_point_set.h"

namespace kvasir::grammar {

// Whose notation a grammar has. They differ in escapes, names, line ends, and in what only one of them has.
enum class EbnfDialect : std::uint8_t {
  kGbnf,      // llama.cpp's
  kXGrammar,  // XGrammar's, which vLLM and SGLang take
};

using EbnfRuleId = std::uint32_t;  // place in EbnfGrammar::rules

struct EbnfNode {
  enum class Kind : std::uint8_t {
    kLiteral,   // text
    kSet,       // one character
    kPattern,   // what the regular expression `text` matches as a whole
    kRule,      // rules[value]
    kTokens,    // one of the tokens
    kSequence,  // the children in turn; none: the empty text
    kChoice,    // any of the children
    kRepeat,    // children[0], min to max times
    kDispatch,  // dispatches[value]
  };
  Kind kind = Kind::kSequence;
  std::uint32_t value = 0;
  std::uint32_t min = 0;
  std::uint32_t max = kUnbounded;
  std::string text = {};
  text::regex::CodePointSet set = {};
  std::vector<TokenId> tokens = {};  // ascending
  std::vector<EbnfNode> children = {};
};

// Text of any kind until a trigger, then a rule.
struct EbnfDispatch {
  std::vector<std::pair<std::string, EbnfRuleId>> triggers;
  std::vector<std::string> excludes;  // not in the text
  bool loops = true;                  // text again behind the rule
};

struct EbnfRule {
  std::string name;
  EbnfNode body;
};

struct EbnfGrammar {
  std::vector<EbnfRule> rules;
  std::vector<EbnfDispatch> dispatches;
  EbnfRuleId root = 0;
};

// Every rule that is named is there. kUsage with line and column: syntax errors, a rule that is not there or there
// twice, a token that is not in the vocabulary; more than 256 KiB, 10,000 rules, 64 nested groups, or a repetition of
// more than 100,000. kUnmet: rule options that change what is sampled.
Result<EbnfGrammar> parse_ebnf(std::string_view text, EbnfDialect dialect, std::string_view root,
                               const TokenNames& tokens);

}  // namespace kvasir::grammar
