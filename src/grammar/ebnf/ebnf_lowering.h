// Rules in extended Backus-Naur form as automata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "grammar/ebnf/ebnf_syntax.h"
#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/derivatives.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// A short rule without recursion becomes plain text where it is used; others become rules.
//
// A repetition of what may be empty counts its rounds that are not: X{m,n} is then X{0,n} over the texts of X but the
// empty one. So no counter ever stands still.
//
// Thread safety: none.
class EbnfLowering {
 public:
  // All outlive this.
  EbnfLowering(const EbnfGrammar& grammar, GrammarBuilder& builder, TermStore& store, Derivatives& derivatives);

  // The root and all that it needs. kUsage: a faulty pattern; kUnmet: past a limit.
  Result<RuleId> lower();

 private:
  enum class Wanted : bool { kAll, kNonEmpty };  // all texts, or all but the empty one

  // Characters of a term for the node, where a repetition that may be empty counts as some more, for each multiplies the
  // ways through a text. kTooLong: it has no term, or a long one.
  std::size_t length(const EbnfNode& node) const;
  TermId plain(const EbnfNode& node);  // Requires: length(node) <= kMaxLength
  void fuse_rules();
  void find_nullable_rules();
  bool is_nullable(const EbnfNode& node) const;
  Status read_patterns(const EbnfNode& node);

  RuleId rule_of(EbnfRuleId rule, Wanted wanted);
  Part lower(const EbnfNode& node, Wanted wanted);
  Part lower_literal(const EbnfNode& node);
  // Pieces of a sequence: short runs of plain text, and other parts.
  std::vector<std::span<const EbnfNode>> pieces_of(std::span<const EbnfNode> children) const;
  Part lower_piece(std::span<const EbnfNode> piece, Wanted wanted);
  Part lower_sequence(std::span<const EbnfNode> children);
  Part lower_nonempty_sequence(std::span<const EbnfNode> children);
  Part lower_choice(const EbnfNode& node, Wanted wanted);
  Part lower_repeat(const EbnfNode& node, Wanted wanted);
  Part lower_dispatch(const EbnfDispatch& dispatch, Wanted wanted);
  Part lower_rule(EbnfRuleId rule, Wanted wanted);
  Part as_rule(const Part& part);

  static constexpr std::size_t kMaxLength = 500;
  static constexpr std::size_t kTooLong = kMaxLength + 1;
  static constexpr std::size_t kRepeatLength = 8;  // of a repetition that may be empty

  const EbnfGrammar& grammar_;
  GrammarBuilder& builder_;
  TermStore& store_;
  Derivatives& derivatives_;
  std::vector<std::vector<EbnfRuleId>> users_;  // by rule
  std::vector<std::optional<TermId>> fused_;    // by rule
  std::vector<std::size_t> lengths_;            // by rule
  std::vector<bool> is_nullable_;               // by rule
  std::map<const EbnfNode*, TermId> patterns_;
  std::map<std::pair<EbnfRuleId, Wanted>, RuleId> rules_;
  std::vector<std::pair<EbnfRuleId, Wanted>> pending_;
};

}  // namespace kvasir::grammar
