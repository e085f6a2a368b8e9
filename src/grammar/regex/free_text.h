// Text of any kind that ends at the first of some marks.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

// Thread safety: none.
class FreeText {
 public:
  // The store and the derivatives outlive this. Requires: well-formed UTF-8, no mark is empty.
  FreeText(TermStore& store, Derivatives& derivatives, std::vector<std::string> marks);

  // Texts with none of the marks; at most max_characters.
  TermId without_marks(std::uint32_t max_characters = kUnbounded);
  // Texts in which the first mark that is complete is this one, at the end; before it at most max_characters.
  // Never a dead language but kNothing. Requires: `mark` is one of the marks.
  TermId until(std::string_view mark, std::uint32_t max_characters = kUnbounded);

 private:
  TermId with_mark_inside();
  bool may_overlap(std::string_view mark) const;

  TermStore& store_;
  Derivatives& derivatives_;
  std::vector<std::string> marks_;
};

}  // namespace kvasir::grammar
