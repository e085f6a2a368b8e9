// What follows a primary expression: attributes, subscripts, calls, filters and tests.
#include "text/template/expression_parser.h"
#include "text/template/number.h"

namespace kvasir::text::jinja {

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

}  // namespace kvasir::text::jinja
