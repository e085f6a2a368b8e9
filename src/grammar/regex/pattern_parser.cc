#include <algorithm>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "grammar/regex/pattern_classes.h"
#include "grammar/regex/pattern_syntax.h"
#include "text/regex/pattern_reader.h"

namespace kvasir::grammar {
namespace {

constexpr int kMaxGroupDepth = 64;
constexpr std::uint32_t kMaxRepeat = 100'000;
constexpr std::size_t kMaxPatternBytes = 16 << 10;

using Kind = PatternNode::Kind;

class PatternParser {
 public:
  PatternParser(std::string_view pattern, ClassReading reading) : in_(pattern, ErrorKind::kUsage), reading_(reading) {}

  Result<PatternNode> parse_all() {
    KVASIR_TRY(PatternNode node, parse_alternatives());
    if (!in_.at_end()) return in_.fail("there is no group that this ends");
    return node;
  }

 private:
  Result<PatternNode> parse_alternatives() {
    PatternNode alternatives = {.kind = Kind::kAlternate};
    do {
      KVASIR_TRY(PatternNode branch, parse_branch());
      alternatives.children.push_back(std::move(branch));
    } while (in_.take(U"|"));
    if (alternatives.children.size() == 1) return std::move(alternatives.children.front());
    return alternatives;
  }

  Result<PatternNode> parse_branch() {
    PatternNode branch;
    while (!in_.at_end() && in_.peek() != '|' && in_.peek() != ')') {
      KVASIR_TRY(PatternNode atom, parse_atom());
      KVASIR_TRY(atom, parse_repeat(std::move(atom)));
      branch.children.push_back(std::move(atom));
    }
    if (branch.children.size() == 1) return std::move(branch.children.front());
    return branch;
  }

  Result<PatternNode> parse_repeat(PatternNode atom) {
    PatternNode repeat = {.kind = Kind::kRepeat};
    KVASIR_TRY(const bool is_repeated, parse_count(repeat));
    if (!is_repeated) return atom;
    if (atom.kind == Kind::kBegin || atom.kind == Kind::kEnd || atom.kind == Kind::kLook) {
      return in_.fail("there is nothing to repeat");
    }
    in_.take(U"?");  // how much is taken first does not change the language
    PatternNode ignored;
    const std::size_t position = in_.position();
    KVASIR_TRY(const bool is_repeated_twice, parse_count(ignored));
    if (is_repeated_twice) {
      in_.go_to(position);
      return in_.fail("there is nothing to repeat");
    }
    repeat.children.push_back(std::move(atom));
    return repeat;
  }

  // Whether a count comes.
  Result<bool> parse_count(PatternNode& repeat) {
    const std::size_t begin = in_.position();
    if (in_.take(U"?")) {
      repeat.max = 1;
    } else if (in_.take(U"+")) {
      repeat.min = 1;
    } else if (!in_.take(U"*")) {
      if (!in_.take(U"{")) return false;
      const std::optional<std::uint32_t> min = parse_number();
      const bool has_comma = in_.take(U",");
      const std::optional<std::uint32_t> max = has_comma ? parse_number() : min;
      if (!min || !in_.take(U"}")) {  // a brace that is itself
        in_.go_to(begin);
        return false;
      }
      repeat.min = *min;
      repeat.max = max.value_or(kUnbounded);
      if (repeat.min > repeat.max) return in_.fail("a repetition has its limits turned round");
      if (repeat.min > kMaxRepeat || (repeat.max != kUnbounded && repeat.max > kMaxRepeat)) {
        return in_.fail(fmt::format("a repetition of more than {}", kMaxRepeat));
      }
    }
    return true;
  }

  std::optional<std::uint32_t> parse_number() {
    std::optional<std::uint32_t> number;
    while (!in_.at_end() && in_.peek() >= '0' && in_.peek() <= '9') {
      number = std::min(number.value_or(0) * 10 + static_cast<std::uint32_t>(in_.next() - '0'), kMaxRepeat + 1);
    }
    return number;
  }

  Result<PatternNode> parse_atom() {
    const char32_t c = in_.next();
    switch (c) {
      case '(':
        return parse_group();
      case '^':
        return PatternNode{.kind = Kind::kBegin};
      case '$':
        return PatternNode{.kind = Kind::kEnd};
      case '.':
        return set_node(any_but_line_ends(reading_));
      case '?':
      case '*':
      case '+':
        return in_.fail("there is nothing to repeat");
      case '[': {
        KVASIR_TRY(auto set, parse_pattern_class(in_, reading_));
        return set_node(std::move(set));
      }
      case '\\': {
        KVASIR_TRY(auto set, parse_pattern_escape(in_, reading_, /*in_class=*/false));
        return set_node(std::move(set));
      }
      default:
        return set_node(text::regex::CodePointSet::of(c, c));
    }
  }

  static PatternNode set_node(text::regex::CodePointSet set) {
    return {.kind = Kind::kSet, .set = std::move(set)};
  }

  Result<PatternNode> parse_group() {
    if (++depth_ > kMaxGroupDepth) {
      return in_.fail(fmt::format("groups are nested more than {} deep", kMaxGroupDepth));
    }
    const ClassReading reading = reading_;
    const bool is_look = in_.starts_with(U"?=") || in_.starts_with(U"?!");
    const bool is_negative = in_.starts_with(U"?!");
    if (is_look) {
      in_.go_to(in_.position() + 2);
      if (is_negative) reading_ = reading == ClassReading::kNarrow ? ClassReading::kWide : ClassReading::kNarrow;
    } else if (in_.take(U"?<=") || in_.take(U"?<!")) {
      return in_.fail("look-behind is not supported");
    } else if (in_.take(U"?<") || in_.take(U"?P<")) {
      while (!in_.at_end() && in_.peek() != '>') in_.next();
      if (!in_.take(U">")) return in_.fail("a group's name has no end");
    } else if (!in_.take(U"?:") && in_.starts_with(U"?")) {
      return in_.fail("this kind of group is not supported");
    }
    KVASIR_TRY(PatternNode inside, parse_alternatives());
    if (!in_.take(U")")) return in_.fail("a group has no end");
    --depth_;
    reading_ = reading;
    if (!is_look) return inside;
    PatternNode look = {.kind = Kind::kLook, .is_negative = is_negative};
    look.children.push_back(std::move(inside));
    return look;
  }

  text::regex::PatternReader in_;
  ClassReading reading_;
  int depth_ = 0;
};

}  // namespace

Result<PatternNode> parse_pattern(std::string_view pattern, ClassReading reading) {
  if (pattern.size() > kMaxPatternBytes) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("a pattern has {} bytes (at most {})", pattern.size(), kMaxPatternBytes));
  }
  if (!is_valid_utf8(pattern)) return make_error(ErrorKind::kUsage, "a pattern is not UTF-8");
  return PatternParser(pattern, reading).parse_all();
}

}  // namespace kvasir::grammar
