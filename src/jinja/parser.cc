#include "jinja/parser.h"

#include <algorithm>
#include <array>
#include <span>

#include "jinja/expression_parser.h"
#include "jinja/token_stream.h"

namespace kvasir::jinja {
namespace {

using Words = std::span<const std::string_view>;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Result<Block> parse() {
    KVASIR_TRY(Block block, parse_block({}));
    if (tokens_.current().kind != TokenKind::kEnd) return tokens_.error("unexpected tag");
    return block;
  }

 private:
  using StatementParser = Result<Stmt> (Parser::*)();
  struct Statement {
    std::string_view tag;
    StatementParser parse;
  };
  static const std::array<Statement, 11> kStatements;

  // Statements up to a tag of `end_words`, which becomes the current token (or to the end of the source).
  Result<Block> parse_block(Words end_words) {
    KVASIR_CHECKED(tokens_.enter());
    Block block;
    while (tokens_.current().kind != TokenKind::kEnd) {
      const int line = tokens_.line();
      if (tokens_.current().kind == TokenKind::kText) {
        block.push_back({.line = line, .node = TextOutput{tokens_.take().text}});
      } else if (tokens_.current().kind == TokenKind::kVariableBegin) {
        tokens_.take();
        KVASIR_TRY(ExprPtr value, expressions_.parse_tuple(true));
        KVASIR_CHECKED(tokens_.expect(TokenKind::kVariableEnd, "'}}'"));
        block.push_back({.line = line, .node = ValueOutput{std::move(value)}});
      } else {
        KVASIR_CHECKED(tokens_.expect(TokenKind::kBlockBegin, "a tag"));
        const auto ends = [&](std::string_view word) { return tokens_.current().is_name(word); };
        if (std::ranges::any_of(end_words, ends)) break;
        KVASIR_TRY(Stmt statement, parse_statement());
        statement.line = line;
        block.push_back(std::move(statement));
        KVASIR_CHECKED(tokens_.expect(TokenKind::kBlockEnd, "'%}'"));
      }
    }
    tokens_.leave();
    return block;
  }

  // The rest of an opening tag and the statements up to the closing word, which is consumed.
  Result<Block> parse_body(std::string_view end_word) {
    const std::array<std::string_view, 1> words = {end_word};
    KVASIR_TRY(Block body, parse_body_until(words));
    tokens_.take();
    return body;
  }

  Result<Block> parse_body_until(Words end_words) {
    tokens_.skip_operator(":");
    KVASIR_CHECKED(tokens_.expect(TokenKind::kBlockEnd, "'%}'"));
    KVASIR_TRY(Block body, parse_block(end_words));
    if (tokens_.current().kind == TokenKind::kEnd) {
      return tokens_.error(fmt::format("expected {{% {} %}}", end_words.front()));
    }
    return body;
  }

  Result<Stmt> parse_statement() {
    const Token& token = tokens_.current();
    const auto it =
        std::ranges::find_if(kStatements, [&](const Statement& s) { return token.is_name(s.tag); });
    if (it == kStatements.end()) return tokens_.error("unknown tag");
    tokens_.take();
    return (this->*it->parse)();
  }

  template <class Node>
  static Stmt statement(Node node) {
    return {.line = 0, .node = std::move(node)};
  }

  Result<Stmt> parse_print() {
    KVASIR_TRY(ExprPtr value, expressions_.parse_tuple(true));
    return statement(ValueOutput{std::move(value)});
  }

  Result<Stmt> parse_if() {
    constexpr std::array<std::string_view, 3> kEnds = {"endif", "elif", "else"};
    If node;
    while (true) {
      KVASIR_TRY(ExprPtr condition, expressions_.parse_tuple(false));
      KVASIR_TRY(Block body, parse_body_until(kEnds));
      node.branches.emplace_back(std::move(condition), std::move(body));
      const std::string word = tokens_.take().text;
      if (word == "endif") break;
      if (word == "elif") continue;
      KVASIR_TRY(node.otherwise, parse_body("endif"));
      break;
    }
    return statement(std::move(node));
  }

  Result<Stmt> parse_for() {
    constexpr std::array<std::string_view, 2> kEnds = {"endfor", "else"};
    For node;
    KVASIR_TRY(node.target, parse_target(false));
    if (node.target.name == "loop") return tokens_.error("a loop cannot bind 'loop'");
    KVASIR_CHECKED(tokens_.expect_word("in"));
    KVASIR_TRY(node.iterable, expressions_.parse_tuple(false, "recursive"));
    if (tokens_.skip_name("if")) {
      KVASIR_TRY(node.filter, expressions_.parse_expression());
    }
    node.recursive = tokens_.skip_name("recursive");
    ++loop_depth_;
    KVASIR_TRY(node.body, parse_body_until(kEnds));
    --loop_depth_;
    if (tokens_.take().text == "else") {
      KVASIR_TRY(node.otherwise, parse_body("endfor"));
    }
    return statement(std::move(node));
  }

  Result<Stmt> parse_loop_control(bool is_break) {
    if (loop_depth_ == 0)
      return tokens_.error(is_break ? "break outside of a loop" : "continue outside of a loop");
    return is_break ? statement(Break{}) : statement(Continue{});
  }
  Result<Stmt> parse_break() { return parse_loop_control(true); }
  Result<Stmt> parse_continue() { return parse_loop_control(false); }

  Result<Stmt> parse_set() {
    KVASIR_TRY(Target target, parse_target(true));
    if (tokens_.skip_operator("=")) {
      KVASIR_TRY(ExprPtr value, expressions_.parse_tuple(true));
      return statement(Set{std::move(target), std::move(value)});
    }
    SetBlock node{.target = std::move(target), .filters = {}, .body = {}};
    if (tokens_.skip_operator("|")) {
      KVASIR_TRY(node.filters, expressions_.parse_filter_chain());
    }
    KVASIR_TRY(node.body, parse_body("endset"));
    return statement(std::move(node));
  }

  Result<Stmt> parse_with() {
    With node;
    while (tokens_.current().kind != TokenKind::kBlockEnd) {
      if (!node.bindings.empty()) KVASIR_CHECKED(tokens_.expect_operator(","));
      KVASIR_TRY(Target target, parse_target(false));
      KVASIR_CHECKED(tokens_.expect_operator("="));
      KVASIR_TRY(ExprPtr value, expressions_.parse_expression());
      node.bindings.emplace_back(std::move(target), std::move(value));
    }
    KVASIR_TRY(node.body, parse_body("endwith"));
    return statement(std::move(node));
  }

  Result<Stmt> parse_filter_block() {
    FilterBlock node;
    KVASIR_TRY(node.filters, expressions_.parse_filter_chain());
    KVASIR_TRY(node.body, parse_body("endfilter"));
    return statement(std::move(node));
  }

  Result<Stmt> parse_generation() {
    const std::size_t loop_depth = std::exchange(loop_depth_, 0);
    KVASIR_TRY(Block body, parse_body("endgeneration"));
    loop_depth_ = loop_depth;
    return statement(Generation{std::move(body)});
  }

  Result<Stmt> parse_macro() {
    MacroStmt node;
    KVASIR_TRY(node.macro.name, tokens_.expect_name("the name of a macro"));
    KVASIR_CHECKED(parse_signature(node.macro));
    KVASIR_CHECKED(parse_macro_body(node.macro, "endmacro"));
    return statement(std::move(node));
  }

  Result<Stmt> parse_call_block() {
    CallBlock node;
    node.caller.name = "caller";
    if (tokens_.current().is_operator("(")) KVASIR_CHECKED(parse_signature(node.caller));
    KVASIR_TRY(node.call, expressions_.parse_expression());
    const auto* postfix = std::get_if<Postfix>(&node.call->node);
    if (postfix == nullptr || !std::holds_alternative<Call>(postfix->suffixes.back().node)) {
      return tokens_.error("expected a call");
    }
    KVASIR_CHECKED(parse_macro_body(node.caller, "endcall"));
    return statement(std::move(node));
  }

  // (name, name=default, ...)
  Status parse_signature(MacroDefinition& macro) {
    KVASIR_CHECKED(tokens_.expect_operator("("));
    while (!tokens_.current().is_operator(")")) {
      if (!macro.parameters.empty()) KVASIR_CHECKED(tokens_.expect_operator(","));
      KVASIR_TRY(std::string name, tokens_.expect_name("a parameter"));
      macro.parameters.push_back(std::move(name));
      if (tokens_.skip_operator("=")) {
        KVASIR_TRY(ExprPtr value, expressions_.parse_expression());
        macro.defaults.push_back(std::move(value));
      } else if (!macro.defaults.empty()) {
        return tokens_.error("expected a default, as the parameter before has one");
      }
    }
    tokens_.take();
    return {};
  }

  // Notes which implicit names the body reads, and passes them on to the macro around it.
  Status parse_macro_body(MacroDefinition& macro, std::string_view end_word) {
    ImplicitNames& names = expressions_.implicit_names();
    const ImplicitNames outer = std::exchange(names, {});
    const std::size_t loop_depth = std::exchange(loop_depth_, 0);
    KVASIR_TRY(macro.body, parse_body(end_word));
    loop_depth_ = loop_depth;
    macro.uses_caller = names.caller;
    macro.uses_varargs = names.varargs;
    macro.uses_kwargs = names.kwargs;
    names = {.caller = names.caller || outer.caller,
             .varargs = names.varargs || outer.varargs,
             .kwargs = names.kwargs || outer.kwargs};
    return {};
  }

  // name | name.attribute | (target, ...) | target, target, ...
  Result<Target> parse_target(bool with_namespace) {
    KVASIR_TRY(Target first, parse_single_target(with_namespace));
    if (!tokens_.current().is_operator(",")) return first;
    Target tuple;
    tuple.parts.push_back(std::move(first));
    while (tokens_.skip_operator(",")) {
      const Token& token = tokens_.current();
      if (token.kind != TokenKind::kName && !token.is_operator("(")) break;
      if (token.is_name("in")) break;
      KVASIR_TRY(Target part, parse_single_target(with_namespace));
      tuple.parts.push_back(std::move(part));
    }
    return tuple;
  }

  Result<Target> parse_single_target(bool with_namespace) {
    if (tokens_.skip_operator("(")) {
      KVASIR_CHECKED(tokens_.enter());
      KVASIR_TRY(Target inner, parse_target(with_namespace));
      tokens_.leave();
      KVASIR_CHECKED(tokens_.expect_operator(")"));
      return inner;
    }
    Target target;
    KVASIR_TRY(target.name, tokens_.expect_name("a name to assign to"));
    constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none", "True", "False", "None"};
    if (std::ranges::find(kConstants, target.name) != kConstants.end()) {
      return tokens_.error(fmt::format("cannot assign to {}", target.name));
    }
    if (with_namespace && tokens_.skip_operator(".")) {
      KVASIR_TRY(target.attribute, tokens_.expect_name("an attribute of the namespace"));
    }
    return target;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  std::size_t loop_depth_ = 0;  // of loops that `break` here would leave
};

const std::array<Parser::Statement, 11> Parser::kStatements = {{
    {"if", &Parser::parse_if},
    {"for", &Parser::parse_for},
    {"set", &Parser::parse_set},
    {"print", &Parser::parse_print},
    {"macro", &Parser::parse_macro},
    {"call", &Parser::parse_call_block},
    {"filter", &Parser::parse_filter_block},
    {"with", &Parser::parse_with},
    {"generation", &Parser::parse_generation},
    {"break", &Parser::parse_break},
    {"continue", &Parser::parse_continue},
}};

}  // namespace

Result<Block> parse_template(std::string_view source) {
  KVASIR_TRY(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens)).parse();
}

}  // namespace kvasir::jinja
