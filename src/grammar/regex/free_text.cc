#include "grammar/regex/free_text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kvasir::grammar {

FreeText::FreeText(TermStore& store, Derivatives& derivatives, std::vector<std::string> marks)
    : store_(store), derivatives_(derivatives), marks_(std::move(marks)) {
  std::ranges::sort(marks_);
  marks_.erase(std::ranges::unique(marks_).begin(), marks_.end());
}

TermId FreeText::with_mark_inside() {
  const TermId marks = store_.literals({marks_.begin(), marks_.end()});
  return store_.concat(store_.any_text(), store_.concat(marks, store_.any_text()));
}

TermId FreeText::without_marks(std::uint32_t max_characters) {
  const TermId text = store_.complement(with_mark_inside());
  if (max_characters == kUnbounded) return text;
  const TermId any = store_.char_class(text::regex::CodePointSet::of(0, kLastCodePoint));
  return store_.all_of({text, store_.repeat(any, 0, max_characters)});
}

// Whether another mark, or this one earlier, may be complete in text and mark together before the mark is: one begins
// in the text and ends with a start of the mark, or lies inside of it.
bool FreeText::may_overlap(std::string_view mark) const {
  const std::string_view start = mark.substr(0, mark.size() - 1);
  return std::ranges::any_of(marks_, [&](std::string_view other) {
    if (start.find(other) != std::string_view::npos) return true;
    for (std::size_t length = 1; length <= std::min(start.size(), other.size() - 1); ++length) {
      if (other.ends_with(start.substr(0, length))) return true;
    }
    return false;
  });
}

TermId FreeText::until(std::string_view mark, std::uint32_t max_characters) {
  const TermId found = store_.concat(without_marks(max_characters), store_.literal(mark));
  if (!may_overlap(mark)) return found;
  const TermId any = store_.char_class(text::regex::CodePointSet::of(0, kLastCodePoint));
  const TermId earlier = store_.concat(with_mark_inside(), any);
  const TermId result = store_.without(found, earlier);
  return derivatives_.is_alive(result) ? result : kNothing;
}

}  // namespace kvasir::grammar
