#include "text/regex/class_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace kvasir::text::regex {
namespace {

constexpr int kMaxClassDepth = 50;

CodePointSet property(std::string_view name) {
  return CodePointSet(property_ranges(name).value_or(CodePointRanges{}));
}

CodePointSet white_space() {
  return CodePointSet({{0x09, 0x0D},
                       {0x20, 0x20},
                       {0x85, 0x85},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000}});
}

// As Oniguruma has \w: with six numbers of Latin-1 and letters in circles and squares.
CodePointSet word_characters() {
  CodePointSet set({{0xB2, 0xB3},
                    {0xB9, 0xB9},
                    {0xBC, 0xBE},
                    {0x24B6, 0x24E9},
                    {0x1F130, 0x1F149},
                    {0x1F150, 0x1F169},
                    {0x1F170, 0x1F189}});
  for (const std::string_view name : {"L", "M", "Nd", "Nl", "Pc"}) set.add(property(name));
  return set;
}

// The class of \d and its like; empty for another letter.
std::optional<CodePointSet> class_escape(char32_t letter) {
  switch (letter) {
    case 'd':
      return property("Nd");
    case 'D':
      return property("Nd").negated();
    case 's':
      return white_space();
    case 'S':
      return white_space().negated();
    case 'w':
      return word_characters();
    case 'W':
      return word_characters().negated();
    default:
      return std::nullopt;
  }
}

std::optional<char32_t> control_escape(char32_t letter, bool in_class) {
  switch (letter) {
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 't':
      return U'\t';
    case 'f':
      return U'\f';
    case 'v':
      return U'\v';
    case 'a':
      return U'\a';
    case 'e':
      return U'\x1B';
    default:
      if (in_class && letter == 'b') return U'\b';
      return std::nullopt;
  }
}

std::optional<std::uint32_t> hex_digit(char32_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// \xHH, \x{H..}, \uHHHH
Result<CodePointSet> parse_hex(PatternReader& in, std::size_t num_digits) {
  const bool has_braces = in.take('{');
  const std::size_t most = has_braces ? 8 : num_digits;
  std::uint64_t value = 0;
  std::size_t count = 0;
  for (; count < most && !in.at_end(); ++count) {
    const auto digit = hex_digit(in.peek());
    if (!digit) break;
    value = value * 16 + *digit;
    in.next();
  }
  if (count == 0 || (has_braces && !in.take('}'))) return in.fail("this is no character's number");
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return in.fail("there is no such character");
  return CodePointSet::of(static_cast<char32_t>(value), static_cast<char32_t>(value));
}

// {Name} or {^Name}
Result<CodePointSet> parse_property(PatternReader& in, bool negative) {
  if (!in.take('{')) return in.fail("a property has no name in braces");
  if (in.take('^')) negative = !negative;
  std::string name;
  while (!in.at_end() && in.peek() != '}' && name.size() < 64) append_utf8(name, in.next());
  if (!in.take('}')) return in.fail("a property's name has no end");
  auto ranges = property_ranges(name);
  if (!ranges) return in.fail(fmt::format("the property '{}' is not known", printable(name)));
  CodePointSet set(*std::move(ranges));
  return negative ? set.negated() : set;
}

class ClassParser {
 public:
  explicit ClassParser(PatternReader& in) : in_(in) {}

  Result<CodePointSet> parse(bool ignores_case) {
    if (++depth_ > kMaxClassDepth) return in_.fail("classes are nested too deep");
    const bool negative = in_.take('^');
    KVASIR_TRY(CodePointSet set, parse_union(/*is_first=*/true));
    while (in_.starts_with(U"&&")) {
      in_.go_to(in_.position() + 2);
      KVASIR_TRY(const CodePointSet other, parse_union(/*is_first=*/false));
      set = set.intersected(other);
    }
    if (!in_.take(']')) return in_.fail("a class has no end");
    --depth_;
    if (ignores_case) set = set.in_any_case();
    return negative ? set.negated() : set;
  }

 private:
  // Everything up to "&&" or "]"; a "]" right at the start is itself.
  Result<CodePointSet> parse_union(bool is_first) {
    CodePointSet set;
    for (; !in_.at_end() && (is_first || in_.peek() != ']') && !in_.starts_with(U"&&"); is_first = false) {
      if (in_.starts_with(U"[:")) return in_.fail("named classes such as [:alpha:] are not supported");
      KVASIR_TRY(const CodePointSet item, parse_item());
      set.add(item);
    }
    return set;
  }

  Result<CodePointSet> parse_item() {
    if (in_.take('[')) return parse(/*ignores_case=*/false);
    KVASIR_TRY(CodePointSet first, parse_character());
    if (!in_.starts_with(U"-") || in_.starts_with(U"-]") || in_.starts_with(U"-[") || !is_single(first))
      return first;
    const std::size_t dash = in_.position();
    in_.next();
    if (in_.at_end()) return in_.fail("a class has no end");
    KVASIR_TRY(const CodePointSet last, parse_character());
    if (!is_single(last)) {  // the dash is itself
      in_.go_to(dash);
      return first;
    }
    const char32_t begin = first.ranges().front().first;
    const char32_t end = last.ranges().front().first;
    if (begin > end) return in_.fail("a range of a class has its ends turned round");
    return CodePointSet::of(begin, end);
  }

  Result<CodePointSet> parse_character() {
    const char32_t c = in_.next();
    if (c == '\\') return parse_escape(in_, /*in_class=*/true);
    return CodePointSet::of(c, c);
  }

  static bool is_single(const CodePointSet& set) {
    return set.ranges().size() == 1 && set.ranges().front().first == set.ranges().front().second;
  }

  PatternReader& in_;
  int depth_ = 0;
};

}  // namespace

Result<CodePointSet> parse_class(PatternReader& in, bool ignores_case) {
  return ClassParser(in).parse(ignores_case);
}

Result<CodePointSet> parse_escape(PatternReader& in, bool in_class) {
  if (in.at_end()) return in.fail("the pattern ends behind a backslash");
  const char32_t c = in.next();
  if (c == 'p' || c == 'P') return parse_property(in, c == 'P');
  if (c == 'x') return parse_hex(in, 2);
  if (c == 'u') return parse_hex(in, 4);
  if (auto set = class_escape(c)) return *std::move(set);
  if (const auto control = control_escape(c, in_class)) return CodePointSet::of(*control, *control);
  const bool is_letter_or_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (is_letter_or_digit)
    return in.fail(fmt::format("the escape \\{} is not supported", static_cast<char>(c)));
  return CodePointSet::of(c, c);
}

}  // namespace kvasir::text::regex
