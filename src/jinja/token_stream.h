// The parser's view of the tokens, with the nesting limit both parsers share.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "jinja/lexer.h"
#include "kvasir/result.h"

namespace kvasir::jinja {

// Brackets, blocks and prefix operators inside each other.
inline constexpr std::size_t kMaxParseDepth = 64;

class TokenStream {
 public:
  // Requires: the last token is kEnd.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& next() const { return tokens_[position_ + 1 < tokens_.size() ? position_ + 1 : position_]; }
  int line() const { return current().line; }
  // The current token, moved past; kEnd is never passed.
  const Token& take() { return tokens_[position_ + 1 < tokens_.size() ? position_++ : position_]; }

  bool skip_operator(std::string_view symbol) { return skip_if(current().is_operator(symbol)); }
  bool skip_name(std::string_view name) { return skip_if(current().is_name(name)); }

  Status expect_operator(std::string_view symbol) {
    if (skip_operator(symbol)) return {};
    return error(fmt::format("expected '{}'", symbol));
  }
  Status expect_word(std::string_view word) {
    if (skip_name(word)) return {};
    return error(fmt::format("expected '{}'", word));
  }
  Status expect(TokenKind kind, std::string_view description) {
    if (skip_if(current().kind == kind)) return {};
    return error(fmt::format("expected {}", description));
  }
  Result<std::string> expect_name(std::string_view description) {
    if (current().kind != TokenKind::kName) return error(fmt::format("expected {}", description));
    return take().text;
  }

  // "line N: <message>, got <the current token>".
  std::unexpected<Error> error(std::string_view message) const {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("line {}: {}, got {}", line(), message, describe(current())));
  }

  // One level deeper. Errors (kBadFile): more than kMaxParseDepth. Every enter() that succeeds is paired
  // with leave() unless parsing fails.
  Status enter() {
    if (depth_ == kMaxParseDepth) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("line {}: nesting deeper than the limit of {}", line(), kMaxParseDepth));
    }
    ++depth_;
    return {};
  }
  void leave() { --depth_; }

 private:
  bool skip_if(bool matches) {
    if (matches) take();
    return matches;
  }

  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kEnd:
        return "the end of the template";
      case TokenKind::kText:
        return "template text";
      case TokenKind::kVariableBegin:
        return "'{{'";
      case TokenKind::kVariableEnd:
        return "'}}'";
      case TokenKind::kBlockBegin:
        return "'{%'";
      case TokenKind::kBlockEnd:
        return "'%}'";
      default:
        return fmt::format("'{}'", token.text);
    }
  }

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace kvasir::jinja
