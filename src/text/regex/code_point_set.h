// Sets of code points, as the classes of a regular expression are.
#pragma once

#include <cstdint>

#include "text/unicode/general_category.h"

namespace kvasir::text::regex {

// A value. Invariant: the ranges ascend and do not touch.
class CodePointSet {
 public:
  CodePointSet() = default;
  explicit CodePointSet(CodePointRanges ranges);
  static CodePointSet of(char32_t first, char32_t last) { return CodePointSet({{first, last}}); }

  const CodePointRanges& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t code_point) const;

  void add(const CodePointSet& other);
  CodePointSet negated() const;
  CodePointSet intersected(const CodePointSet& other) const;
  // With the other case of every letter.
  CodePointSet in_any_case() const;

  friend bool operator==(const CodePointSet&, const CodePointSet&) = default;

 private:
  CodePointRanges ranges_;
};

}  // namespace kvasir::text::regex
