#include "grammar/ebnf/ebnf_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/code_point.h"

namespace kvasir::grammar {

EbnfReader::EbnfReader(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    characters_ += code_point;
    at += size_bytes;
  }
}

bool EbnfReader::take(std::u32string_view text) {
  if (!std::u32string_view(characters_).substr(position_).starts_with(text)) return false;
  position_ += text.size();
  return true;
}

void EbnfReader::skip_blanks(bool with_lines) {
  const auto is_line_end = [](char32_t c) { return c == '\n' || c == '\r'; };
  while (!at_end()) {
    const char32_t c = peek();
    if (c == '#') {
      while (!at_end() && !is_line_end(peek())) ++position_;
    } else if (c == ' ' || c == '\t' || (with_lines && is_line_end(c))) {
      ++position_;
    } else {
      return;
    }
  }
}

bool EbnfReader::is_first_in_line(std::size_t position) const {
  while (position > 0) {
    const char32_t before = characters_[--position];
    if (before == '\n' || before == '\r') return true;
    if (before != ' ' && before != '\t') return false;
  }
  return true;
}

// A line ends with \n, \r or both.
std::size_t EbnfReader::line_of(std::size_t position) const {
  std::size_t line = 1;
  for (std::size_t i = 0; i < position; ++i) {
    const bool is_pair = characters_[i] == '\r' && i + 1 < characters_.size() && characters_[i + 1] == '\n';
    if (characters_[i] == '\n' || (characters_[i] == '\r' && !is_pair)) ++line;
  }
  return line;
}

std::unexpected<Error> EbnfReader::fail_at(std::size_t position, std::string_view what, ErrorKind kind) const {
  std::size_t begin = position;
  while (begin > 0 && characters_[begin - 1] != '\n' && characters_[begin - 1] != '\r') --begin;
  return make_error(kind, fmt::format("grammar, line {}, column {}: {}", line_of(position), position - begin + 1, what));
}

}  // namespace kvasir::grammar
