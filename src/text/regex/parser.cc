#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/code_point.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "text/regex/class_parser.h"
#include "text/regex/pattern_reader.h"
#include "text/regex/syntax.h"

namespace kvasir::text::regex {
namespace {

constexpr int kMaxGroupDepth = 250;
constexpr std::int32_t kMaxCount = 1000;

Node set_node(CodePointSet set) { return {.kind = Node::Kind::kSet, .set = std::move(set)}; }
Node look_node(CodePointSet set, bool at_end) {
  return {.kind = Node::Kind::kLook, .set = std::move(set), .at_end = at_end};
}
Node repeat_node(Node child, std::int32_t min, std::int32_t max, bool is_lazy) {
  Node node = {.kind = Node::Kind::kRepeat, .is_lazy = is_lazy, .min = min, .max = max};
  node.children.push_back(std::move(child));
  return node;
}

struct Count {
  std::int32_t min = 0;
  std::int32_t max = kUnbounded;
  bool has_braces = false;
};

class Parser {
 public:
  explicit Parser(std::string_view pattern) : in_(pattern) {}

  Result<Node> parse_all() {
    KVASIR_TRY(Node node, parse_alternatives());
    if (!in_.at_end()) return in_.fail("there is no group that this ends");
    return node;
  }

 private:
  // a|b|c, up to the end of the group
  Result<Node> parse_alternatives() {
    if (++depth_ > kMaxGroupDepth)
      return in_.fail(fmt::format("groups are nested more than {} deep", kMaxGroupDepth));
    Node alternatives = {.kind = Node::Kind::kAlternate};
    do {
      KVASIR_TRY(Node branch, parse_branch());
      alternatives.children.push_back(std::move(branch));
    } while (in_.take('|'));
    --depth_;
    if (alternatives.children.size() == 1) return std::move(alternatives.children.front());
    return alternatives;
  }

  Result<Node> parse_branch() {
    Node branch;
    while (!in_.at_end() && in_.peek() != '|' && in_.peek() != ')') {
      KVASIR_TRY(Node atom, parse_atom());
      KVASIR_TRY(atom, parse_repeats(std::move(atom)));
      branch.children.push_back(std::move(atom));
    }
    if (branch.children.size() == 1) return std::move(branch.children.front());
    return branch;
  }

  Result<Node> parse_repeats(Node atom) {
    for (;;) {
      KVASIR_TRY(const std::optional<Count> count, parse_count());
      if (!count) return atom;
      const bool is_exact = count->has_braces && count->min == count->max;
      const bool is_lazy = !is_exact && in_.take('?');
      const bool is_possessive = !count->has_braces && !is_lazy && in_.take('+');
      if (is_possessive) {
        KVASIR_TRY(atom, possessive(std::move(atom), *count));
      } else {
        atom = repeat_node(std::move(atom), count->min, count->max, is_lazy);
      }
    }
  }

  Result<std::optional<Count>> parse_count() {
    if (in_.take('?')) return Count{0, 1};
    if (in_.take('*')) return Count{0, kUnbounded};
    if (in_.take('+')) return Count{1, kUnbounded};
    const std::size_t begin = in_.position();
    if (!in_.take('{')) return std::nullopt;
    const std::optional<std::int32_t> min = parse_number();
    Count count = {.min = min.value_or(0), .max = min.value_or(0), .has_braces = true};
    const bool has_comma = in_.take(',');
    const std::optional<std::int32_t> max = has_comma ? parse_number() : min;
    if (has_comma) count.max = max.value_or(kUnbounded);
    if (!in_.take('}') || (!min && !max)) {  // a brace that is itself
      in_.go_to(begin);
      return std::nullopt;
    }
    if (count.max != kUnbounded && count.min > count.max)
      return in_.fail("a repetition has its limits turned round");
    if (count.min > kMaxCount || count.max > kMaxCount) {
      return in_.fail(fmt::format("a repetition of more than {}", kMaxCount));
    }
    return count;
  }

  std::optional<std::int32_t> parse_number() {
    std::optional<std::int32_t> number;
    while (!in_.at_end() && in_.peek() >= '0' && in_.peek() <= '9') {
      number = std::min(number.value_or(0) * 10 + static_cast<std::int32_t>(in_.next() - '0'), kMaxCount + 1);
    }
    return number;
  }

  // X++ is X+ that no X follows, X?+ an X or the place before something else: taken at once, as its own end.
  Result<Node> possessive(Node atom, Count count) {
    if (atom.kind != Node::Kind::kSet)
      return in_.fail("possessive marks are supported behind one character class only");
    Node no_more = look_node(atom.set.negated(), /*at_end=*/true);
    if (count.max == 1) {
      Node either = {.kind = Node::Kind::kAlternate};
      either.children.push_back(std::move(atom));
      either.children.push_back(std::move(no_more));
      return either;
    }
    Node both;
    both.children.push_back(repeat_node(std::move(atom), count.min, count.max, /*is_lazy=*/false));
    both.children.push_back(std::move(no_more));
    return both;
  }

  Result<Node> parse_atom() {
    const char32_t c = in_.next();
    switch (c) {
      case '(':
        return parse_group();
      case '[': {
        KVASIR_TRY(CodePointSet set, parse_class(in_, ignores_case_));
        return set_node(std::move(set));
      }
      case '.':
        return set_node(CodePointSet::of('\n', '\n').negated());
      case '$':
        return look_node(CodePointSet::of('\n', '\n'), /*at_end=*/true);
      case '^':
        return in_.fail("'^' is not supported: a look behind");
      case '?':
      case '*':
      case '+':
        return in_.fail("there is nothing to repeat");
      case '\\':
        if (in_.take('z')) return look_node({}, /*at_end=*/true);
        break;
      default:
        break;
    }
    KVASIR_TRY(CodePointSet set, c == '\\' ? parse_escape(in_, /*in_class=*/false)
                                           : Result<CodePointSet>(CodePointSet::of(c, c)));
    return set_node(ignores_case_ ? set.in_any_case() : std::move(set));
  }

  Result<Node> parse_group() {
    const bool ignored_case = ignores_case_;
    if (in_.take('?')) {
      if (in_.take('=')) return parse_look(/*negative=*/false);
      if (in_.take('!')) return parse_look(/*negative=*/true);
      if (in_.take('>')) return in_.fail("atomic groups are not supported");
      if (in_.take('<')) {
        KVASIR_CHECKED(skip_group_name());
      } else {
        KVASIR_CHECKED(parse_flags());
        if (in_.take(')')) {  // until the end of the group around
          KVASIR_TRY(Node rest, parse_alternatives());
          ignores_case_ = ignored_case;
          return rest;
        }
        if (!in_.take(':')) return in_.fail("this kind of group is not supported");
      }
    }
    KVASIR_TRY(Node group, parse_alternatives());
    if (!in_.take(')')) return in_.fail("a group has no end");
    ignores_case_ = ignored_case;
    return group;
  }

  Status parse_flags() {
    bool on = true;
    while (!in_.at_end() && in_.peek() != ':' && in_.peek() != ')') {
      const char32_t flag = in_.next();
      if (flag == '-') {
        on = false;
      } else if (flag == 'i') {
        ignores_case_ = on;
      } else {
        return in_.fail("this kind of group is not supported");
      }
    }
    return {};
  }

  Status skip_group_name() {
    if (!in_.at_end() && (in_.peek() == '=' || in_.peek() == '!'))
      return in_.fail("look-behind is not supported");
    while (!in_.at_end() && in_.peek() != '>') in_.next();
    if (!in_.take('>')) return in_.fail("a group's name has no end");
    return {};
  }

  // One character, or one of several.
  Result<Node> parse_look(bool negative) {
    KVASIR_TRY(const Node inside, parse_alternatives());
    if (!in_.take(')')) return in_.fail("a group has no end");
    CodePointSet set;
    const bool is_alternate = inside.kind == Node::Kind::kAlternate;
    for (const Node& branch : is_alternate ? std::span(inside.children) : std::span(&inside, 1)) {
      if (branch.kind != Node::Kind::kSet)
        return in_.fail("a look ahead at anything but one character is not supported");
      set.add(branch.set);
    }
    return look_node(negative ? set.negated() : set, negative);
  }

  PatternReader in_;
  bool ignores_case_ = false;
  int depth_ = 0;
};

}  // namespace

Result<Node> parse(std::string_view pattern) {
  if (!is_valid_utf8(pattern)) return make_error(ErrorKind::kBadFile, "a pattern is not UTF-8");
  return Parser(pattern).parse_all();
}

}  // namespace kvasir::text::regex
