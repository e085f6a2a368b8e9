#include "grammar/regex/pattern.h"

#include <algorithm>
#include <vector>

namespace kvasir::grammar {
namespace {

using Kind = PatternNode::Kind;

bool has_kind(const PatternNode& node, Kind kind) {
  return node.kind == kind ||
         std::ranges::any_of(node.children, [&](const PatternNode& child) { return has_kind(child, kind); });
}

bool is_plain(const PatternNode& node) {
  return !has_kind(node, Kind::kBegin) && !has_kind(node, Kind::kEnd) && !has_kind(node, Kind::kLook);
}

// From the end to the start: each part is put before the texts that may follow it, so that what looks ahead sees them.
class PatternLowering {
 public:
  explicit PatternLowering(TermStore& store) : store_(store) {}

  // The texts that begin with the node and go on as `rest`. at_start: nothing is before it; else something is.
  Result<TermId> lower(const PatternNode& node, TermId rest, bool at_start) {
    if (is_plain(node)) {
      return store_.concat(plain(node), rest);
    }
    switch (node.kind) {
      case Kind::kBegin:
        return at_start ? rest : kNothing;
      case Kind::kEnd:
        return store_.is_nullable(rest) ? kEmptyText : kNothing;
      case Kind::kLook: {
        KVASIR_TRY(const TermId follows, lower(node.children[0], store_.any_text(), at_start));
        return store_.all_of({node.is_negative ? store_.complement(follows) : follows, rest});
      }
      case Kind::kAlternate: {
        std::vector<TermId> branches;
        for (const PatternNode& child : node.children) {
          KVASIR_TRY(const TermId branch, lower(child, rest, at_start));
          branches.push_back(branch);
        }
        return store_.any_of(std::move(branches));
      }
      case Kind::kConcat:
        return lower_concat(node, 0, rest, at_start);
      case Kind::kRepeat:
        return lower_repeat(node, rest, at_start);
      case Kind::kSet:
        break;  // is plain
    }
    return kNothing;
  }

 private:
  TermId plain(const PatternNode& node) {
    std::vector<TermId> children;
    switch (node.kind) {
      case Kind::kSet:
        return store_.char_class(node.set);
      case Kind::kRepeat:
        return store_.repeat(plain(node.children[0]), node.min, node.max);
      default:
        for (const PatternNode& child : node.children) children.push_back(plain(child));
        return node.kind == Kind::kAlternate ? store_.any_of(std::move(children)) : store_.concat(children);
    }
  }

  // The children from `first` on.
  Result<TermId> lower_concat(const PatternNode& node, std::size_t first, TermId rest, bool at_start) {
    if (first == node.children.size()) return rest;
    const PatternNode& child = node.children[first];
    const bool has_begin = std::any_of(node.children.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                                       node.children.end(),
                                       [](const PatternNode& later) { return has_kind(later, Kind::kBegin); });
    if (!at_start || !has_begin) {
      KVASIR_TRY(const TermId behind, lower_concat(node, first + 1, rest, at_start && !takes(child)));
      return lower(child, behind, at_start);
    }
    if (!is_plain(child)) {
      if (takes(child)) return make_error(ErrorKind::kUsage, "a pattern with ^ behind a group with ^ or $");
      KVASIR_TRY(const TermId behind, lower_concat(node, first + 1, rest, at_start));
      return lower(child, behind, at_start);
    }
    // Behind a part that may be empty the text may still begin.
    const TermId term = plain(child);
    KVASIR_TRY(const TermId later, lower_concat(node, first + 1, rest, /*at_start=*/false));
    const TermId taken = store_.concat(store_.without_empty_text(term), later);
    if (!store_.is_nullable(term)) return taken;
    KVASIR_TRY(const TermId empty, lower_concat(node, first + 1, rest, /*at_start=*/true));
    return store_.any_of({taken, empty});
  }

  // Whether the node may take characters.
  static bool takes(const PatternNode& node) {
    if (node.kind == Kind::kSet) return true;
    if (node.kind == Kind::kLook) return false;
    return std::ranges::any_of(node.children, [](const PatternNode& child) { return takes(child); });
  }

  Result<TermId> lower_repeat(const PatternNode& node, TermId rest, bool at_start) {
    const PatternNode& child = node.children[0];
    if (node.max == 0) return rest;
    if (node.max > 1) return lower_rounds(node, rest, at_start);
    KVASIR_TRY(const TermId once, lower(child, rest, at_start));
    return node.min == 1 ? once : store_.any_of({once, rest});
  }

  // Only the first round can be at the start of the text, and only the last one at its end. Rounds that take nothing
  // may be left out, so that every other one is behind a character.
  Result<TermId> lower_rounds(const PatternNode& node, TermId rest, bool at_start) {
    const PatternNode& child = node.children[0];
    if (has_kind(child, Kind::kLook)) {
      return make_error(ErrorKind::kUsage, "a pattern with a look-ahead inside of a repetition");
    }
    if (is_skippable(child) && (node.min > 1 || node.max != kUnbounded)) {
      return make_error(ErrorKind::kUsage, "a pattern that counts rounds which may be an anchor alone");
    }
    KVASIR_TRY(const TermId last, lower(child, rest, /*at_start=*/false));
    const TermId middle = between(child);
    const auto rounds = [&](std::uint32_t min, std::uint32_t max) {
      const std::uint32_t min_before = min == 0 ? 0 : min - 1;
      std::vector<TermId> texts = {store_.concat(store_.repeat(middle, min, max), rest)};
      if (max > 0) texts.push_back(store_.concat(store_.repeat(middle, min_before, one_less(max)), last));
      return store_.any_of(std::move(texts));
    };
    if (!at_start) return rounds(node.min, node.max);
    KVASIR_TRY(const TermId begun, lower(child, rounds(node.min == 0 ? 0 : node.min - 1, one_less(node.max)), true));
    return node.min == 0 ? store_.any_of({begun, rest}) : begun;
  }

  static std::uint32_t one_less(std::uint32_t max) { return max == kUnbounded ? max : max - 1; }

  // Texts of the node inside of a longer text, where no anchor holds.
  TermId between(const PatternNode& node) {
    if (node.kind == Kind::kBegin || node.kind == Kind::kEnd) return kNothing;
    std::vector<TermId> children;
    for (const PatternNode& child : node.children) children.push_back(between(child));
    switch (node.kind) {
      case Kind::kConcat:
        return store_.concat(children);
      case Kind::kAlternate:
        return store_.any_of(std::move(children));
      case Kind::kRepeat:
        return store_.repeat(children[0], node.min, node.max);
      default:
        return plain(node);
    }
  }

  // Whether the node may take no character.
  static bool is_skippable(const PatternNode& node) {
    switch (node.kind) {
      case Kind::kSet:
        return false;
      case Kind::kConcat:
        return std::ranges::all_of(node.children, is_skippable);
      case Kind::kAlternate:
        return std::ranges::any_of(node.children, is_skippable);
      case Kind::kRepeat:
        return node.min == 0 || is_skippable(node.children[0]);
      default:
        return true;
    }
  }

  TermStore& store_;
};

}  // namespace

Result<TermId> pattern_language(TermStore& store, std::string_view pattern, PatternFit fit, ClassReading reading) {
  KVASIR_TRY(const PatternNode node, parse_pattern(pattern, reading));
  PatternLowering lowering(store);
  if (fit == PatternFit::kWhole) return lowering.lower(node, kEmptyText, /*at_start=*/true);
  KVASIR_TRY(const TermId at_start, lowering.lower(node, store.any_text(), /*at_start=*/true));
  KVASIR_TRY(const TermId later, lowering.lower(node, store.any_text(), /*at_start=*/false));
  if (at_start == later) return store.concat(store.any_text(), later);
  return store.any_of({at_start, store.concat(store.without_empty_text(store.any_text()), later)});
}

}  // namespace kvasir::grammar
