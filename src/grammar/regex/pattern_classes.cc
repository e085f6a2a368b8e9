#include "grammar/regex/pattern_classes.h"

#include <optional>
#include <string>
#include <utility>

#include "base/code_point.h"
#include "text/unicode/general_category.h"

namespace kvasir::grammar {
namespace {

using text::regex::CodePointSet;

CodePointSet property_set(std::string_view name) {
  return CodePointSet(text::property_ranges(name).value_or(text::CodePointRanges{}));
}

// Digits: ECMA-262 has ASCII's, Python all of Nd.
CodePointSet digits(ClassReading reading) {
  return reading == ClassReading::kNarrow ? CodePointSet::of('0', '9') : property_set("Nd");
}

// Blanks: ECMA-262 has U+FEFF, Python has U+001C to U+001F and U+0085 instead.
CodePointSet blanks(ClassReading reading) {
  CodePointSet set({{0x09, 0x0D}, {0x20, 0x20}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A},
                    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}});
  if (reading == ClassReading::kWide) set.add(CodePointSet({{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}}));
  return set;
}

// Word characters: ECMA-262 has ASCII's, Python all letters and numbers, Rust marks and joiners as well.
CodePointSet word_set(ClassReading reading) {
  CodePointSet set({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  if (reading == ClassReading::kNarrow) return set;
  for (const std::string_view name : {"L", "M", "N", "Pc"}) set.add(property_set(name));
  set.add(CodePointSet({{0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F189}}));
  return set;
}

ClassReading opposite(ClassReading reading) {
  return reading == ClassReading::kNarrow ? ClassReading::kWide : ClassReading::kNarrow;
}

std::optional<CodePointSet> named_class(char32_t letter, ClassReading reading) {
  switch (letter) {
    case 'd':
      return digits(reading);
    case 'D':
      return digits(opposite(reading)).negated();
    case 's':
      return blanks(reading);
    case 'S':
      return blanks(opposite(reading)).negated();
    case 'w':
      return word_set(reading);
    case 'W':
      return word_set(opposite(reading)).negated();
    default:
      return std::nullopt;
  }
}

std::optional<char32_t> control_character(char32_t letter) {
  constexpr std::u32string_view kLetters = U"0fnrtv";
  constexpr std::u32string_view kCharacters(U"\0\f\n\r\t\v", 6);
  const std::size_t at = kLetters.find(letter);
  return at == std::u32string_view::npos ? std::nullopt : std::optional(kCharacters[at]);
}

std::optional<char32_t> hex_value(text::regex::PatternReader& in, std::size_t num_digits) {
  char32_t value = 0;
  for (std::size_t i = 0; i < num_digits; ++i) {
    if (in.at_end()) return std::nullopt;
    const char32_t c = in.next();
    const bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!is_letter && (c < '0' || c > '9')) return std::nullopt;
    value = value << 4 | (is_letter ? (c & 0xF) + 9 : c - '0');
  }
  return value;
}

// Behind \u: four digits, twice where they are halves of a pair, or some in braces.
Result<CodePointSet> parse_unicode(text::regex::PatternReader& in) {
  std::optional<char32_t> value = char32_t{0};
  if (in.take(U"{")) {
    std::size_t num_digits = 0;
    while (!in.take(U"}")) {
      const std::optional<char32_t> digit = hex_value(in, 1);
      if (!digit || ++num_digits > 6) return in.fail("this is no character's number");
      *value = *value << 4 | *digit;
    }
    if (num_digits == 0) return in.fail("this is no character's number");
  } else {
    value = hex_value(in, 4);
    if (!value) return in.fail("\\u has no four digits");
    if (*value >= kFirstSurrogate && *value < 0xDC00 && in.take(U"\\u")) {
      const std::optional<char32_t> low = hex_value(in, 4);
      if (!low || *low < 0xDC00 || *low > kLastSurrogate) return in.fail("half of a surrogate pair");
      *value = 0x10000 + ((*value - kFirstSurrogate) << 10) + (*low - 0xDC00);
    }
  }
  if (*value > kLastCodePoint || (*value >= kFirstSurrogate && *value <= kLastSurrogate)) {
    return in.fail("there is no such character");
  }
  return CodePointSet::of(*value, *value);
}

// Behind \p or \P.
Result<CodePointSet> parse_property_name(text::regex::PatternReader& in, bool is_negative) {
  if (!in.take(U"{")) return in.fail("a property has no name in braces");
  std::string name;
  while (!in.at_end() && in.peek() != '}' && name.size() < 64) append_utf8(name, in.next());
  if (!in.take(U"}")) return in.fail("a property's name has no end");
  const auto ranges = text::property_ranges(name);
  if (!ranges) return in.fail(fmt::format("the property '{}' is not known", printable(name)));
  const CodePointSet set(*ranges);
  return is_negative ? set.negated() : set;
}

// An element of a class: a character, or a set that no range can begin with.
struct ClassElement {
  CodePointSet set;
  std::optional<char32_t> character;
};

Result<ClassElement> parse_element(text::regex::PatternReader& in, ClassReading reading) {
  const char32_t c = in.next();
  if (c != '\\') return ClassElement{CodePointSet::of(c, c), c};
  KVASIR_TRY(CodePointSet set, parse_pattern_escape(in, reading, /*in_class=*/true));
  const bool is_one = set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].second;
  const char32_t character = is_one ? set.ranges()[0].first : 0;
  return ClassElement{std::move(set), is_one ? std::optional(character) : std::nullopt};
}

}  // namespace

Result<CodePointSet> parse_pattern_escape(text::regex::PatternReader& in, ClassReading reading, bool in_class) {
  if (in.at_end()) return in.fail("a backslash at the end");
  const char32_t c = in.next();
  if (auto named = named_class(c, reading)) return *std::move(named);
  if (c == '0' && !in.at_end() && in.peek() >= '0' && in.peek() <= '9') return in.fail("octal numbers are not supported");
  if (const auto control = control_character(c)) return CodePointSet::of(*control, *control);
  if (c >= '1' && c <= '9') return in.fail("back-references are not supported");
  if (c == 'b' && in_class) return CodePointSet::of('\b', '\b');
  if (c == 'b' || c == 'B') return in.fail("\\b and \\B are not supported");
  if (c == 'k') return in.fail("back-references are not supported");
  if (c == 'p' || c == 'P') return parse_property_name(in, c == 'P');
  if (c == 'u') return parse_unicode(in);
  if (c == 'x') {
    const std::optional<char32_t> value = hex_value(in, 2);
    if (!value) return in.fail("\\x has no two digits");
    return CodePointSet::of(*value, *value);
  }
  if (c == 'c') {
    const char32_t letter = in.at_end() ? 0 : (in.next() | 0x20);
    if (letter < 'a' || letter > 'z') return in.fail("\\c has no letter");
    return CodePointSet::of(letter & 0x1F, letter & 0x1F);
  }
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  if (is_letter) return in.fail("this escape is not known");
  return CodePointSet::of(c, c);
}

Result<CodePointSet> parse_pattern_class(text::regex::PatternReader& in, ClassReading reading) {
  const bool is_negative = in.take(U"^");
  const ClassReading inner = is_negative ? opposite(reading) : reading;
  CodePointSet set;
  bool is_first = true;
  while (!in.take(U"]")) {
    if (in.at_end()) return in.fail("a class has no end");
    KVASIR_TRY(const ClassElement from, parse_element(in, inner));
    set.add(from.set);
    const std::size_t dash = in.position();
    if (in.take(U"-") && !in.at_end() && in.peek() != ']') {
      KVASIR_TRY(const ClassElement to, parse_element(in, inner));
      if (!from.character || !to.character) {  // [\w-.]: the dash is itself
        set.add(CodePointSet::of('-', '-'));
        set.add(to.set);
      } else if (*from.character > *to.character) {
        return in.fail("a range has its ends turned round");
      } else {
        set.add(CodePointSet::of(*from.character, *to.character));
      }
    } else {
      in.go_to(dash);
    }
    is_first = false;
  }
  if (is_first) {
    // ECMA-262 has [] for nothing and [^] for anything, others read on.
    return in.fail("a class is empty");
  }
  return is_negative ? set.negated() : set;
}

CodePointSet any_but_line_ends(ClassReading reading) {
  if (reading == ClassReading::kWide) return CodePointSet::of('\n', '\n').negated();
  return CodePointSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).negated();
}

}  // namespace kvasir::grammar
