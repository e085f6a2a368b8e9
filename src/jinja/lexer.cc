#include "jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/code_point.h"
#include "jinja/python_string.h"
#include "jinja/string_literal.h"

namespace kvasir::jinja {
namespace {

// "\r\n" and "\r" become "\n"; one newline at the very end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Length of `digits`, single underscores between them allowed.
std::size_t digits_length(std::string_view text, bool (*accepts)(char)) {
  std::size_t size = 0;
  while (size < text.size()) {
    if (accepts(text[size])) {
      ++size;
    } else if (text[size] == '_' && size > 0 && size + 1 < text.size() && accepts(text[size + 1])) {
      size += 2;
    } else {
      break;
    }
  }
  return size;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (position_ < source_.size()) KVASIR_CHECKED(lex_data());
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(position_); }

  std::unexpected<Error> error(std::string_view message) const {
    return make_error(ErrorKind::kBadFile, fmt::format("line {}: {}", line_, message));
  }

  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance(std::size_t size) {
    const std::string_view passed = source_.substr(position_, size);
    line_ += static_cast<int>(std::count(passed.begin(), passed.end(), '\n'));
    position_ += size;
  }

  // Template data up to the next tag, and that tag.
  Status lex_data() {
    const std::size_t begin = find_tag();
    std::string_view text = source_.substr(position_, begin - position_);
    if (begin == source_.size()) {
      push_text(text);
      position_ = begin;
      return {};
    }
    const char type = source_[begin + 1];
    const char control = begin + 2 < source_.size() ? source_[begin + 2] : '\0';
    text = stripped_before_tag(text, type, control);
    push_text(text);
    advance(begin - position_);
    const bool has_control = control == '-' || control == '+';
    if (type == '%' && is_raw_tag(begin + 2 + (has_control ? 1 : 0))) return lex_raw();
    advance(has_control ? 3 : 2);
    if (type == '#') return lex_comment();
    return lex_tag(type == '%');
  }

  std::size_t find_tag() const {
    for (std::size_t i = position_; i + 1 < source_.size(); ++i) {
      const char next = source_[i + 1];
      if (source_[i] == '{' && (next == '{' || next == '%' || next == '#')) return i;
    }
    return source_.size();
  }

  // The text in front of a tag, as `-` before the tag or lstrip_blocks leaves it.
  std::string_view stripped_before_tag(std::string_view text, char type, char control) const {
    if (control == '-') return strip_whitespace_right(text);
    if (control == '+' || type == '{') return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !at_line_start_) return text;
    return strip_whitespace(text.substr(line_begin)).empty() ? text.substr(0, line_begin) : text;
  }

  void push_text(std::string_view text) {
    if (!text.empty()) push(TokenKind::kText, std::string(text));
  }

  // Passes the end of a tag: `-` eats all whitespace behind it, trim_blocks one newline unless `+`.
  void end_tag(std::string_view end, bool trims_newline) {
    if (rest().starts_with('-')) {
      advance(1 + end.size());
      const std::size_t whitespace = rest().size() - strip_whitespace_left(rest()).size();
      at_line_start_ = whitespace > 0 && source_[position_ + whitespace - 1] == '\n';
      advance(whitespace);
      return;
    }
    const bool keeps_newline = rest().starts_with('+');
    advance((keeps_newline ? 1 : 0) + end.size());
    at_line_start_ = trims_newline && !keeps_newline && rest().starts_with('\n');
    if (at_line_start_) advance(1);
  }

  Status lex_comment() {
    const std::size_t end = rest().find("#}");
    if (end == std::string_view::npos) return error("a comment is not closed");
    const bool has_control = end > 0 && (rest()[end - 1] == '-' || rest()[end - 1] == '+');
    advance(end - (has_control ? 1 : 0));
    end_tag("#}", true);
    return {};
  }

  // Whether `word` and the end of the tag follow at `position`.
  std::optional<std::size_t> bare_tag_end(std::size_t position, std::string_view word) const {
    std::string_view text = strip_whitespace_left(source_.substr(position));
    if (!text.starts_with(word)) return std::nullopt;
    text = strip_whitespace_left(text.substr(word.size()));
    const std::size_t control = text.starts_with('-') || (word == "endraw" && text.starts_with('+')) ? 1 : 0;
    if (!text.substr(control).starts_with("%}")) return std::nullopt;
    return source_.size() - text.size();
  }

  bool is_raw_tag(std::size_t position) const { return bare_tag_end(position, "raw").has_value(); }

  Status lex_raw() {
    const char control = source_[position_ + 2];
    const std::size_t tag_end = *bare_tag_end(position_ + (control == '-' || control == '+' ? 3 : 2), "raw");
    advance(tag_end - position_);
    end_tag("%}", false);
    for (std::size_t i = position_; i + 1 < source_.size(); ++i) {
      if (source_[i] != '{' || source_[i + 1] != '%') continue;
      const char end_control = i + 2 < source_.size() ? source_[i + 2] : '\0';
      const std::size_t word = i + (end_control == '-' || end_control == '+' ? 3 : 2);
      const auto end = bare_tag_end(word, "endraw");
      if (!end) continue;
      push_text(stripped_before_tag(source_.substr(position_, i - position_), '%', end_control));
      advance(*end - position_);
      end_tag("%}", true);
      return {};
    }
    return error("a raw block is not closed");
  }

  Status lex_tag(bool is_block) {
    push(is_block ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, "");
    const std::string_view end = is_block ? "%}" : "}}";
    std::string open_brackets;
    while (true) {
      advance(rest().size() - strip_whitespace_left(rest()).size());
      if (rest().empty()) return error(is_block ? "a {% tag is not closed" : "a {{ tag is not closed");
      if (open_brackets.empty()) {
        const char control = rest()[0];
        const bool has_control = control == '-' || (is_block && control == '+');
        if (rest().substr(has_control ? 1 : 0).starts_with(end)) {
          push(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, "");
          end_tag(end, is_block);
          return {};
        }
      }
      KVASIR_CHECKED(lex_token(open_brackets));
    }
  }

  Status lex_token(std::string& open_brackets) {
    const char c = rest()[0];
    if (is_digit(c)) return lex_number();
    if (c == '\'' || c == '"') return lex_string();
    if (const std::size_t size = name_length(); size > 0) {
      push(TokenKind::kName, std::string(rest().substr(0, size)));
      advance(size);
      return {};
    }
    return lex_operator(open_brackets);
  }

  std::size_t name_length() const {
    std::size_t size = 0;
    while (size < rest().size()) {
      const CodePoint c = code_point_at(rest(), size);
      const bool starts = c.value == '_' || has_property(c.value, kAlphabetic);
      if (!starts && (size == 0 || !has_property(c.value, kDecimal | kDigit | kNumeric))) break;
      size += c.size_bytes;
    }
    return size;
  }

  Status lex_number() {
    const std::string_view text = rest();
    const bool after_dot = position_ > 0 && source_[position_ - 1] == '.';
    std::size_t size = digits_length(text, is_digit);
    const std::size_t whole = size;
    if (!after_dot) {
      if (text.substr(size).starts_with('.')) {
        const std::size_t fraction = digits_length(text.substr(size + 1), is_digit);
        if (fraction > 0) size += 1 + fraction;
      }
      if (size < text.size() && (text[size] | 32) == 'e') {
        const std::size_t sign = size + 1 < text.size() && (text[size + 1] == '+' || text[size + 1] == '-')
                                     ? 1
                                     : 0;
        const std::size_t exponent = digits_length(text.substr(std::min(size + 1 + sign, text.size())),
                                                   is_digit);
        if (exponent > 0) size += 1 + sign + exponent;
      }
    }
    if (size > whole) {
      push(TokenKind::kFloat, std::string(text.substr(0, size)));
      advance(size);
      return {};
    }
    return lex_integer(whole);
  }

  Status lex_integer(std::size_t decimal_size) {
    const std::string_view text = rest();
    if (text.size() > 2 && text[0] == '0') {
      const auto prefixed = [&](bool (*accepts)(char)) {
        const std::size_t underscore = text[2] == '_' ? 1 : 0;
        const std::size_t digits = digits_length(text.substr(2 + underscore), accepts);
        return digits == 0 ? 0 : 2 + underscore + digits;
      };
      std::size_t size = 0;
      switch (text[1] | 32) {
        case 'x':
          size = prefixed([](char c) { return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'); });
          break;
        case 'o':
          size = prefixed([](char c) { return c >= '0' && c <= '7'; });
          break;
        case 'b':
          size = prefixed([](char c) { return c == '0' || c == '1'; });
          break;
        default:
          break;
      }
      if (size > 0) {
        push(TokenKind::kInteger, std::string(text.substr(0, size)));
        advance(size);
        return {};
      }
    }
    std::string digits = std::string(text.substr(0, decimal_size));
    if (digits[0] == '0' && digits.find_first_not_of("0_") != std::string::npos) {
      return error(fmt::format("the number {} starts with 0", digits));
    }
    push(TokenKind::kInteger, std::move(digits));
    advance(decimal_size);
    return {};
  }

  Status lex_string() {
    const char quote = rest()[0];
    std::size_t end = 1;
    while (end < rest().size() && rest()[end] != quote) end += rest()[end] == '\\' ? 2 : 1;
    if (end >= rest().size()) return error("a string is not closed");
    auto value = unescape_string(rest().substr(1, end - 1));
    if (!value) return error(value.error().message);
    push(TokenKind::kString, std::move(*value));
    advance(end + 1);
    return {};
  }

  Status lex_operator(std::string& open_brackets) {
    // Longest first.
    constexpr std::array<std::string_view, 26> kOperators = {
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto it = std::ranges::find_if(kOperators,
                                         [&](std::string_view symbol) { return rest().starts_with(symbol); });
    if (it == kOperators.end()) {
      return error(
          fmt::format("unexpected character '{}'", rest().substr(0, code_point_at(rest(), 0).size_bytes)));
    }
    const char c = (*it)[0];
    if (c == '(' || c == '[' || c == '{') open_brackets += c;
    if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : (c == ']' ? '[' : '{');
      if (open_brackets.empty() || open_brackets.back() != open)
        return error(fmt::format("unexpected '{}'", c));
      open_brackets.pop_back();
    }
    push(TokenKind::kOperator, std::string(*it));
    advance(it->size());
    return {};
  }

  std::string_view source_;
  std::size_t position_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;  // whether only whitespace-eating stands between here and a line's start
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  const std::string text = normalized(source);
  return Lexer(text).run();
}

}  // namespace kvasir::jinja
