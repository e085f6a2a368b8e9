// What may follow the first character of a text of a language, as far as somebody asks.
#pragma once

#include <cstddef>

#include "grammar/regex/derived_terms.h"
#include "grammar/regex/term.h"
#include "grammar/regex/term_store.h"

namespace kvasir::grammar {

// Takes languages apart character by character (Brzozowski, "Derivatives of Regular Expressions", 1964), and tells
// which have a text at all. The store remembers everything.
//
// Thread safety: none.
class Derivatives {
 public:
  // The store outlives this.
  explicit Derivatives(TermStore& store) : store_(store), known_(store.derived()) {}

  // By first character. No target is a language without texts. The reference lives as long as the store.
  const TermRanges& of(TermId term);
  TermId next(TermId term, char32_t code_point);
  // As of(), but a target may have no texts.
  const TermRanges& raw(TermId term);

  // Whether the language has a text.
  bool is_alive(TermId term);

  std::size_t size_bytes() const { return known_.size_bytes(); }

 private:
  using Life = DerivedTerms::Life;

  TermRanges derive(TermId term);
  TermRanges derive_class(TermId term) const;
  TermRanges derive_concat(TermId term);
  TermRanges derive_children(TermId term);
  TermRanges derive_repeat(TermId term);
  TermRanges derive_multiples(TermId term);
  bool has_text(TermId term);
  void grow();

  TermStore& store_;
  DerivedTerms& known_;  // of the store
};

}  // namespace kvasir::grammar
