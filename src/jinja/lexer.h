// Template source to tokens, with Jinja's whitespace control as transformers sets it up: trim_blocks and
// lstrip_blocks on, the last newline dropped, line ends read as "\n".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::jinja {

enum class TokenKind : std::uint8_t {
  kText,           // template data, whitespace already stripped
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,  // escapes already replaced
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of a string without its quotes
  int line = 1;

  bool is_operator(std::string_view symbol) const { return kind == TokenKind::kOperator && text == symbol; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// Errors (kBadFile): "line N: ...". Requires: source is well-formed UTF-8.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace kvasir::jinja
