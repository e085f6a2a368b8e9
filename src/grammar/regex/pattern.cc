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
    if (node.max > 1) {
      return make_error(ErrorKind::kUsage, "a pattern with an anchor or a look-ahead inside of a repetition");
    }
    if (node.max == 0) return rest;
    KVASIR_TRY(const TermId once, lower(child, rest, at_start));
    return node.min == 1 ? once : store_.any_of({once, rest});
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
