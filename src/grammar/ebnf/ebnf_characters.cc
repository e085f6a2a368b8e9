#include "grammar/ebnf/ebnf_characters.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "base/code_point.h"
#include "grammar/regex/term.h"

namespace kvasir::grammar {
namespace {

using text::regex::CodePointSet;

std::optional<char32_t> ebnf_hex_digit(char32_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// The digits behind \x, \u or \U. num_digits 0: one and more, as many as there are.
Result<char32_t> read_hex(EbnfReader& in, std::size_t num_digits) {
  const std::size_t begin = in.position() - 2;
  char32_t value = 0;
  std::size_t num_read = 0;
  while (num_digits == 0 || num_read < num_digits) {
    const std::optional<char32_t> digit = ebnf_hex_digit(in.peek());
    if (!digit) break;
    in.next();
    ++num_read;
    value = value << 4 | *digit;
    if (value > kLastCodePoint) return in.fail_at(begin, "this escape is beyond U+10FFFF");
  }
  if (num_read == 0 || num_read < num_digits) {
    return in.fail_at(begin, fmt::format("this escape needs {} hexadecimal digits",
                                         num_digits == 0 ? std::string("one or more") : std::to_string(num_digits)));
  }
  if (value >= kFirstSurrogate && value <= kLastSurrogate) {
    return in.fail_at(begin, "this escape is a surrogate, which is no character");
  }
  return value;
}

struct Escapes {
  std::u32string_view names;
  std::u32string_view meanings;
};

constexpr Escapes kGbnfEscapes = {U"trn\\\"[]-", U"\t\r\n\\\"[]-"};
constexpr Escapes kXGrammarEscapes = {U"nrtbfave\\\"'/?", U"\n\r\t\b\f\a\v\x1B\\\"'/?"};
constexpr std::u32string_view kXGrammarClassEscapes = U"^$\\.*+?()[]{}|/-";

// Behind a backslash.
Result<char32_t> read_escape(EbnfReader& in, EbnfDialect dialect, bool in_class) {
  const std::size_t begin = in.position() - 1;
  if (in.at_end()) return in.fail_at(begin, "a backslash at the end");
  const char32_t name = in.next();
  const bool is_xgrammar = dialect == EbnfDialect::kXGrammar;
  if (name == 'x') return read_hex(in, is_xgrammar ? 0 : 2);
  if (name == 'u') return read_hex(in, 4);
  if (name == 'U') return read_hex(in, 8);
  if (is_xgrammar && name == '0') return U'\0';
  if (is_xgrammar && in_class && kXGrammarClassEscapes.find(name) != std::u32string_view::npos) return name;
  const Escapes& escapes = is_xgrammar ? kXGrammarEscapes : kGbnfEscapes;
  const std::size_t at = escapes.names.find(name);
  if (at == std::u32string_view::npos) {
    std::string shown;
    append_utf8(shown, name);
    return in.fail_at(begin, fmt::format("the escape '\\{}' is not known", name < 0x20 ? "" : shown));
  }
  return escapes.meanings[at];
}

// One character, perhaps as an escape. Requires: !in.at_end().
Result<char32_t> read_character(EbnfReader& in, EbnfDialect dialect, bool in_class) {
  const char32_t c = in.next();
  if (c == '\\') return read_escape(in, dialect, in_class);
  if ((c == '\n' || c == '\r') && dialect == EbnfDialect::kXGrammar) {
    return in.fail_at(in.position() - 1, fmt::format("a line ends inside of a {}", in_class ? "class" : "literal"));
  }
  return c;
}

}  // namespace

Result<std::string> read_ebnf_literal(EbnfReader& in, EbnfDialect dialect) {
  const std::size_t begin = in.position() - 1;
  std::string text;
  while (!in.take(U'"')) {
    if (in.at_end()) return in.fail_at(begin, "a literal has no end");
    KVASIR_TRY(const char32_t c, read_character(in, dialect, /*in_class=*/false));
    append_utf8(text, c);
  }
  return text;
}

Result<CodePointSet> read_ebnf_class(EbnfReader& in, EbnfDialect dialect) {
  const std::size_t begin = in.position() - 1;
  const bool is_negated = in.take(U'^');
  text::CodePointRanges ranges;
  while (!in.take(U']')) {
    if (in.at_end()) return in.fail_at(begin, "a class has no end");
    const std::size_t from = in.position();
    KVASIR_TRY(const char32_t first, read_character(in, dialect, /*in_class=*/true));
    char32_t last = first;
    if (in.peek() == '-' && in.peek(1) != ']') {
      in.next();
      if (in.at_end()) return in.fail_at(begin, "a class has no end");
      KVASIR_TRY(last, read_character(in, dialect, /*in_class=*/true));
      if (last < first) return in.fail_at(from, "a range has its ends turned round");
    }
    ranges.emplace_back(first, last);
  }
  const bool is_any = is_negated && dialect == EbnfDialect::kXGrammar;
  if (ranges.empty() && !is_any) return in.fail_at(begin, "a class without characters");
  const CodePointSet set(std::move(ranges));
  return is_negated ? set.negated() : set;
}

}  // namespace kvasir::grammar
