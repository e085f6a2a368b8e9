// Jinja's expression grammar.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/operators.h"
#include "jinja/token_stream.h"

namespace kvasir::jinja {

// Which of the names a macro may use implicitly an expression has read so far.
struct ImplicitNames {
  bool caller = false;
  bool varargs = false;
  bool kwargs = false;
};

// Precedence, loosest first: conditional, or, and, not, comparison and in, + -, ~, * / // %, **, unary,
// then postfix, filters and tests.
//
// Errors everywhere (kBadFile): "line N: expected ..., got ...".
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Result<ExprPtr> parse_expression();
  // Without a conditional, as `for ... in` and `if` take.
  Result<ExprPtr> parse_or();
  // One expression, or several with commas: a tuple. `stop_word` ends the list like a closing tag.
  Result<ExprPtr> parse_tuple(bool with_conditional, std::string_view stop_word = {});
  // `name` or `name(arguments)`, further ones behind pipes.
  Result<std::vector<FilterCall>> parse_filter_chain();

  ImplicitNames& implicit_names() { return implicit_names_; }

 private:
  Result<ExprPtr> parse_conditional();
  Result<ExprPtr> parse_junction(bool is_and);
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_comparison();
  // `operand (operator operand)*`, left to right.
  Result<ExprPtr> parse_arithmetic(std::span<const std::pair<std::string_view, BinaryOperator>> operators,
                                   Result<ExprPtr> (ExpressionParser::*operand)());
  Result<ExprPtr> parse_sum();
  Result<ExprPtr> parse_concatenation();
  Result<ExprPtr> parse_product();
  Result<ExprPtr> parse_power();
  // A filter binds looser than a sign but tighter than any operator: -x|abs is (-x)|abs.
  Result<ExprPtr> parse_unary(bool with_filters);
  Result<ExprPtr> parse_filtered_unary() { return parse_unary(true); }
  Result<ExprPtr> parse_primary();
  Result<ExprPtr> parse_name();
  Result<ExprPtr> parse_number();
  Result<ExprPtr> parse_string();
  Result<ExprPtr> parse_parenthesized();
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  bool at_tuple_end(std::string_view stop_word) const;
  Result<ExprPtr> parse_postfix(ExprPtr base, bool with_filters);
  Result<Suffix> parse_attribute();
  Result<Suffix> parse_subscript();
  Result<Suffix> parse_call();
  Result<Suffix> parse_test();
  Result<FilterCall> parse_filter();
  Result<std::string> parse_dotted_name(std::string_view description);
  Result<CallArguments> parse_arguments();
  Status parse_argument(CallArguments& arguments);
  TokenStream& tokens_;
  ImplicitNames implicit_names_;
};

}  // namespace kvasir::jinja
