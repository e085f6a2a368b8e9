// A regular expression that is looked for in a text, in time linear in the text.
#pragma once

#include <string_view>
#include <utility>

#include "kvasir/result.h"
#include "text/regex/automaton.h"

namespace kvasir::text::regex {

// A leading ^ is the text's begin. Thread safety: immutable.
class Search {
 public:
  // kBadFile: an empty pattern, and as Automaton::compile.
  static Result<Search> compile(std::string_view pattern) {
    const bool is_anchored = pattern.starts_with('^');
    if (is_anchored) pattern.remove_prefix(1);
    if (pattern.empty()) return make_error(ErrorKind::kBadFile, "the pattern is empty");
    KVASIR_TRY(Automaton automaton, Automaton::compile(pattern));
    return Search(std::move(automaton), is_anchored);
  }

  // Requires: text is well-formed UTF-8.
  bool matches(std::string_view text) const {
    if (automaton_.matches_empty()) return true;
    bool is_found = false;
    automaton_.for_each_match(text, [&](std::size_t begin, std::size_t) { is_found = is_found || !is_anchored_ || begin == 0; });
    return is_found;
  }

 private:
  Search(Automaton automaton, bool is_anchored) : automaton_(std::move(automaton)), is_anchored_(is_anchored) {}

  Automaton automaton_;
  bool is_anchored_;
};

}  // namespace kvasir::text::regex
