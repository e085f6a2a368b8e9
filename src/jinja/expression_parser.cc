#include "jinja/expression_parser.h"

#include <algorithm>
#include <array>

#include "jinja/comparison.h"
#include "jinja/number.h"
#include "jinja/operators.h"

namespace kvasir::jinja {
namespace {

template <class Node>
ExprPtr make_expr(int line, Node node) {
  return std::make_unique<Expr>(Expr{.line = line, .node = std::move(node)});
}

constexpr std::array kSumOperators = {
    std::pair<std::string_view, BinaryOperator>{"+", BinaryOperator::kAdd},
    std::pair<std::string_view, BinaryOperator>{"-", BinaryOperator::kSubtract}};
constexpr std::array kProductOperators = {
    std::pair<std::string_view, BinaryOperator>{"*", BinaryOperator::kMultiply},
    std::pair<std::string_view, BinaryOperator>{"/", BinaryOperator::kDivide},
    std::pair<std::string_view, BinaryOperator>{"//", BinaryOperator::kFloorDivide},
    std::pair<std::string_view, BinaryOperator>{"%", BinaryOperator::kModulo}};
constexpr std::array kPowerOperators = {
    std::pair<std::string_view, BinaryOperator>{"**", BinaryOperator::kPower}};
constexpr std::array kCompareOperators = {
    std::pair<std::string_view, CompareOperator>{"==", CompareOperator::kEqual},
    std::pair<std::string_view, CompareOperator>{"!=", CompareOperator::kNotEqual},
    std::pair<std::string_view, CompareOperator>{"<", CompareOperator::kLess},
    std::pair<std::string_view, CompareOperator>{"<=", CompareOperator::kLessEqual},
    std::pair<std::string_view, CompareOperator>{">", CompareOperator::kGreater},
    std::pair<std::string_view, CompareOperator>{">=", CompareOperator::kGreaterEqual}};

// The operator the token is one of, if it is.
template <class Table>
auto operator_of(const Token& token, const Table& table)
    -> std::optional<typename Table::value_type::second_type> {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  const auto it = std::ranges::find_if(table, [&](const auto& entry) { return entry.first == token.text; });
  if (it == table.end()) return std::nullopt;
  return it->second;
}

}  // namespace

Result<ExprPtr> ExpressionParser::parse_expression() {
  KVASIR_CHECKED(tokens_.enter());
  KVASIR_TRY(ExprPtr expr, parse_conditional());
  tokens_.leave();
  return expr;
}

Result<ExprPtr> ExpressionParser::parse_conditional() {
  KVASIR_TRY(ExprPtr value, parse_or());
  std::size_t levels = 0;
  while (true) {
    const int line = tokens_.line();
    if (!tokens_.skip_name("if")) break;
    // `a if b if c` nests to the left, so each one is a level of its own.
    KVASIR_CHECKED(tokens_.enter());
    ++levels;
    KVASIR_TRY(ExprPtr condition, parse_or());
    ExprPtr otherwise;
    if (tokens_.skip_name("else")) {
      KVASIR_TRY(otherwise, parse_expression());
    }
    value = make_expr(line, Conditional{std::move(condition), std::move(value), std::move(otherwise)});
  }
  for (; levels > 0; --levels) tokens_.leave();
  return value;
}

Result<ExprPtr> ExpressionParser::parse_or() { return parse_junction(false); }

Result<ExprPtr> ExpressionParser::parse_junction(bool is_and) {
  const int line = tokens_.line();
  const auto operand = [&] { return is_and ? parse_not() : parse_junction(true); };
  KVASIR_TRY(ExprPtr first, operand());
  if (!tokens_.current().is_name(is_and ? "and" : "or")) return first;
  Junction junction{.is_and = is_and, .operands = {}};
  junction.operands.push_back(std::move(first));
  while (tokens_.skip_name(is_and ? "and" : "or")) {
    KVASIR_TRY(ExprPtr next, operand());
    junction.operands.push_back(std::move(next));
  }
  return make_expr(line, std::move(junction));
}

Result<ExprPtr> ExpressionParser::parse_not() {
  const int line = tokens_.line();
  if (!tokens_.skip_name("not")) return parse_comparison();
  KVASIR_CHECKED(tokens_.enter());
  KVASIR_TRY(ExprPtr operand, parse_not());
  tokens_.leave();
  return make_expr(line, Negation{std::move(operand)});
}

Result<ExprPtr> ExpressionParser::parse_comparison() {
  const int line = tokens_.line();
  KVASIR_TRY(ExprPtr first, parse_sum());
  ComparisonChain chain;
  while (true) {
    std::optional<CompareOperator> op = operator_of(tokens_.current(), kCompareOperators);
    if (op) {
      tokens_.take();
    } else if (tokens_.skip_name("in")) {
      op = CompareOperator::kIn;
    } else if (tokens_.current().is_name("not") && tokens_.next().is_name("in")) {
      tokens_.take();
      tokens_.take();
      op = CompareOperator::kNotIn;
    } else {
      break;
    }
    KVASIR_TRY(ExprPtr operand, parse_sum());
    chain.rest.emplace_back(*op, std::move(operand));
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make_expr(line, std::move(chain));
}

Result<ExprPtr> ExpressionParser::parse_arithmetic(
    std::span<const std::pair<std::string_view, BinaryOperator>> operators,
    Result<ExprPtr> (ExpressionParser::*operand)()) {
  const int line = tokens_.line();
  KVASIR_TRY(ExprPtr first, (this->*operand)());
  ArithmeticChain chain;
  while (const auto op = operator_of(tokens_.current(), operators)) {
    tokens_.take();
    KVASIR_TRY(ExprPtr next, (this->*operand)());
    chain.rest.emplace_back(*op, std::move(next));
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make_expr(line, std::move(chain));
}

Result<ExprPtr> ExpressionParser::parse_sum() {
  return parse_arithmetic(kSumOperators, &ExpressionParser::parse_concatenation);
}
Result<ExprPtr> ExpressionParser::parse_product() {
  return parse_arithmetic(kProductOperators, &ExpressionParser::parse_power);
}
Result<ExprPtr> ExpressionParser::parse_power() {
  return parse_arithmetic(kPowerOperators, &ExpressionParser::parse_filtered_unary);
}

Result<ExprPtr> ExpressionParser::parse_concatenation() {
  const int line = tokens_.line();
  KVASIR_TRY(ExprPtr first, parse_product());
  if (!tokens_.current().is_operator("~")) return first;
  Concatenation concatenation;
  concatenation.operands.push_back(std::move(first));
  while (tokens_.skip_operator("~")) {
    KVASIR_TRY(ExprPtr next, parse_product());
    concatenation.operands.push_back(std::move(next));
  }
  return make_expr(line, std::move(concatenation));
}

Result<ExprPtr> ExpressionParser::parse_unary(bool with_filters) {
  const int line = tokens_.line();
  const bool is_minus = tokens_.current().is_operator("-");
  if (!is_minus && !tokens_.current().is_operator("+")) {
    KVASIR_TRY(ExprPtr primary, parse_primary());
    return parse_postfix(std::move(primary), with_filters);
  }
  tokens_.take();
  KVASIR_CHECKED(tokens_.enter());
  KVASIR_TRY(ExprPtr operand, parse_unary(false));
  tokens_.leave();
  return parse_postfix(make_expr(line, SignedExpr{is_minus, std::move(operand)}), with_filters);
}

Result<ExprPtr> ExpressionParser::parse_primary() {
  const Token& token = tokens_.current();
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString:
      return parse_string();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    case TokenKind::kOperator:
      if (token.text == "(") return parse_parenthesized();
      if (token.text == "[") return parse_list();
      if (token.text == "{") return parse_dict();
      break;
    default:
      break;
  }
  return tokens_.error("expected an expression");
}

Result<ExprPtr> ExpressionParser::parse_name() {
  const Token& token = tokens_.take();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return make_expr(token.line, Literal{Value::boolean(true)});
  if (name == "false" || name == "False") return make_expr(token.line, Literal{Value::boolean(false)});
  if (name == "none" || name == "None") return make_expr(token.line, Literal{Value::none()});
  implicit_names_.caller |= name == "caller";
  implicit_names_.varargs |= name == "varargs";
  implicit_names_.kwargs |= name == "kwargs";
  return make_expr(token.line, NameRef{name});
}

Result<ExprPtr> ExpressionParser::parse_string() {
  const int line = tokens_.line();
  std::string text;
  while (tokens_.current().kind == TokenKind::kString) text += tokens_.take().text;
  return make_expr(line, Literal{Value::traced(std::move(text), {})});
}

Result<ExprPtr> ExpressionParser::parse_number() {
  const Token& token = tokens_.take();
  if (token.kind == TokenKind::kFloat) {
    const auto number = parse_float(token.text);
    if (number) return make_expr(token.line, Literal{Value::number(*number)});
  } else if (const auto integer = parse_int(token.text, 0)) {
    return make_expr(token.line, Literal{Value::integer(*integer)});
  }
  return make_error(ErrorKind::kBadFile,
                    fmt::format("line {}: the number {} does not fit 64 bits", token.line, token.text));
}

Result<ExprPtr> ExpressionParser::parse_parenthesized() {
  const int line = tokens_.line();
  KVASIR_CHECKED(tokens_.expect_operator("("));
  if (tokens_.skip_operator(")")) return make_expr(line, ListDisplay{.items = {}, .kind = ListKind::kTuple});
  KVASIR_TRY(ExprPtr inner, parse_tuple(true));
  KVASIR_CHECKED(tokens_.expect_operator(")"));
  return inner;
}

Result<ExprPtr> ExpressionParser::parse_list() {
  const int line = tokens_.line();
  KVASIR_CHECKED(tokens_.expect_operator("["));
  ListDisplay display;
  while (!tokens_.current().is_operator("]")) {
    if (!display.items.empty()) KVASIR_CHECKED(tokens_.expect_operator(","));
    if (tokens_.current().is_operator("]")) break;
    KVASIR_TRY(ExprPtr item, parse_expression());
    display.items.push_back(std::move(item));
  }
  tokens_.take();
  return make_expr(line, std::move(display));
}

Result<ExprPtr> ExpressionParser::parse_dict() {
  const int line = tokens_.line();
  KVASIR_CHECKED(tokens_.expect_operator("{"));
  DictDisplay display;
  while (!tokens_.current().is_operator("}")) {
    if (!display.entries.empty()) KVASIR_CHECKED(tokens_.expect_operator(","));
    if (tokens_.current().is_operator("}")) break;
    KVASIR_TRY(ExprPtr key, parse_expression());
    KVASIR_CHECKED(tokens_.expect_operator(":"));
    KVASIR_TRY(ExprPtr value, parse_expression());
    display.entries.emplace_back(std::move(key), std::move(value));
  }
  tokens_.take();
  return make_expr(line, std::move(display));
}

bool ExpressionParser::at_tuple_end(std::string_view stop_word) const {
  const Token& token = tokens_.current();
  return token.kind == TokenKind::kVariableEnd || token.kind == TokenKind::kBlockEnd ||
         token.is_operator(")") || (!stop_word.empty() && token.is_name(stop_word));
}

Result<ExprPtr> ExpressionParser::parse_tuple(bool with_conditional, std::string_view stop_word) {
  const int line = tokens_.line();
  const auto item = [&]() -> Result<ExprPtr> {
    if (with_conditional) return parse_expression();
    KVASIR_CHECKED(tokens_.enter());
    KVASIR_TRY(ExprPtr expr, parse_or());
    tokens_.leave();
    return expr;
  };
  KVASIR_TRY(ExprPtr first, item());
  if (!tokens_.current().is_operator(",")) return first;
  ListDisplay display{.items = {}, .kind = ListKind::kTuple};
  display.items.push_back(std::move(first));
  while (tokens_.skip_operator(",")) {
    if (at_tuple_end(stop_word)) break;
    KVASIR_TRY(ExprPtr next, item());
    display.items.push_back(std::move(next));
  }
  return make_expr(line, std::move(display));
}

// Suffixes of a primary expression: attributes, subscripts, calls, filters and tests.
Result<ExprPtr> ExpressionParser::parse_postfix(ExprPtr base, bool with_filters) {
  Postfix postfix;
  const int line = base->line;
  const auto push = [&](Result<Suffix> suffix) -> Status {
    if (!suffix) return std::unexpected(std::move(suffix).error());
    postfix.suffixes.push_back(std::move(*suffix));
    return {};
  };
  while (true) {
    const Token& token = tokens_.current();
    if (token.is_operator(".")) {
      KVASIR_CHECKED(push(parse_attribute()));
    } else if (token.is_operator("[")) {
      KVASIR_CHECKED(push(parse_subscript()));
    } else if (token.is_operator("(")) {
      KVASIR_CHECKED(push(parse_call()));
    } else {
      break;
    }
  }
  while (with_filters) {
    const int suffix_line = tokens_.line();
    if (tokens_.skip_operator("|")) {
      KVASIR_TRY(FilterCall filter, parse_filter());
      postfix.suffixes.push_back({.line = suffix_line, .node = std::move(filter)});
    } else if (tokens_.current().is_name("is")) {
      KVASIR_CHECKED(push(parse_test()));
    } else if (tokens_.current().is_operator("(")) {
      KVASIR_CHECKED(push(parse_call()));
    } else {
      break;
    }
  }
  if (postfix.suffixes.empty()) return base;
  postfix.base = std::move(base);
  return std::make_unique<Expr>(Expr{.line = line, .node = std::move(postfix)});
}

Result<Suffix> ExpressionParser::parse_attribute() {
  const int line = tokens_.line();
  tokens_.take();
  const Token& token = tokens_.current();
  if (token.kind == TokenKind::kName) {
    return Suffix{.line = line, .node = AttributeAccess{tokens_.take().text}};
  }
  const auto index = token.kind == TokenKind::kInteger ? parse_int(token.text, 0) : std::nullopt;
  if (!index) return tokens_.error("expected a name or a number behind '.'");
  tokens_.take();
  auto key = std::make_unique<Expr>(Expr{.line = line, .node = Literal{Value::integer(*index)}});
  return Suffix{.line = line, .node = Subscript{std::move(key)}};
}

Result<Suffix> ExpressionParser::parse_subscript() {
  const int line = tokens_.line();
  tokens_.take();
  const auto at_bound_end = [&] {
    return tokens_.current().is_operator(":") || tokens_.current().is_operator("]");
  };
  ExprPtr first;
  if (!tokens_.current().is_operator(":")) {
    KVASIR_TRY(first, parse_tuple(true));
    if (tokens_.skip_operator("]")) return Suffix{.line = line, .node = Subscript{std::move(first)}};
  }
  SliceAccess slice{.start = std::move(first), .stop = nullptr, .step = nullptr};
  KVASIR_CHECKED(tokens_.expect_operator(":"));
  if (!at_bound_end()) {
    KVASIR_TRY(slice.stop, parse_expression());
  }
  if (tokens_.skip_operator(":") && !at_bound_end()) {
    KVASIR_TRY(slice.step, parse_expression());
  }
  KVASIR_CHECKED(tokens_.expect_operator("]"));
  return Suffix{.line = line, .node = std::move(slice)};
}

Result<Suffix> ExpressionParser::parse_call() {
  const int line = tokens_.line();
  KVASIR_TRY(CallArguments arguments, parse_arguments());
  return Suffix{.line = line, .node = Call{std::move(arguments)}};
}

Result<CallArguments> ExpressionParser::parse_arguments() {
  CallArguments arguments;
  KVASIR_CHECKED(tokens_.expect_operator("("));
  bool first = true;
  while (!tokens_.current().is_operator(")")) {
    if (!first) KVASIR_CHECKED(tokens_.expect_operator(","));
    if (!first && tokens_.current().is_operator(")")) break;
    first = false;
    KVASIR_CHECKED(parse_argument(arguments));
  }
  tokens_.take();
  return arguments;
}

Status ExpressionParser::parse_argument(CallArguments& arguments) {
  const bool unpacked = arguments.unpacked_list != nullptr || arguments.unpacked_dict != nullptr;
  if (tokens_.current().is_operator("*") && !unpacked) {
    tokens_.take();
    KVASIR_TRY(arguments.unpacked_list, parse_expression());
    return {};
  }
  if (arguments.unpacked_dict != nullptr) return tokens_.error("expected ')' behind **arguments");
  if (tokens_.skip_operator("**")) {
    KVASIR_TRY(arguments.unpacked_dict, parse_expression());
    return {};
  }
  if (tokens_.current().kind == TokenKind::kName && tokens_.next().is_operator("=")) {
    std::string name = tokens_.take().text;
    tokens_.take();
    KVASIR_TRY(ExprPtr value, parse_expression());
    arguments.keywords.emplace_back(std::move(name), std::move(value));
    return {};
  }
  if (unpacked || !arguments.keywords.empty()) return tokens_.error("positional argument behind named ones");
  KVASIR_TRY(ExprPtr value, parse_expression());
  arguments.positional.push_back(std::move(value));
  return {};
}

Result<std::string> ExpressionParser::parse_dotted_name(std::string_view description) {
  KVASIR_TRY(std::string name, tokens_.expect_name(description));
  while (tokens_.skip_operator(".")) {
    KVASIR_TRY(const std::string part, tokens_.expect_name(description));
    name += "." + part;
  }
  return name;
}

Result<FilterCall> ExpressionParser::parse_filter() {
  FilterCall filter;
  KVASIR_TRY(filter.name, parse_dotted_name("the name of a filter"));
  filter.filter = find_filter(filter.name);
  if (tokens_.current().is_operator("(")) {
    KVASIR_TRY(filter.arguments, parse_arguments());
  }
  return filter;
}

Result<std::vector<FilterCall>> ExpressionParser::parse_filter_chain() {
  std::vector<FilterCall> filters;
  do {
    KVASIR_TRY(FilterCall filter, parse_filter());
    filters.push_back(std::move(filter));
  } while (tokens_.skip_operator("|"));
  return filters;
}

Result<Suffix> ExpressionParser::parse_test() {
  const int line = tokens_.line();
  tokens_.take();
  TestCall test;
  test.negated = tokens_.skip_name("not");
  KVASIR_TRY(test.name, parse_dotted_name("the name of a test"));
  test.test = find_test(test.name);
  const Token& token = tokens_.current();
  const bool is_bracket = token.is_operator("[") || token.is_operator("{");
  const bool is_value = token.kind == TokenKind::kName || token.kind == TokenKind::kString ||
                        token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat;
  const bool is_connective = token.is_name("else") || token.is_name("or") || token.is_name("and");
  if (token.is_operator("(")) {
    KVASIR_TRY(test.arguments, parse_arguments());
  } else if ((is_value || is_bracket) && !is_connective) {
    if (token.is_name("is")) return tokens_.error("expected one test only");
    KVASIR_CHECKED(tokens_.enter());
    KVASIR_TRY(ExprPtr primary, parse_primary());
    KVASIR_TRY(ExprPtr argument, parse_postfix(std::move(primary), false));
    tokens_.leave();
    test.arguments.positional.push_back(std::move(argument));
  }
  return Suffix{.line = line, .node = std::move(test)};
}

}  // namespace kvasir::jinja
