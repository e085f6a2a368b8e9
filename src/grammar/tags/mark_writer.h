// Marks of a model's answers, which may be control tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// A token that has no text in an answer; a grammar names it by its id.
struct ControlToken {
  std::string text;  // that stands for it in templates
  TokenId id = kNoToken;
  bool ends_answer = false;
};

// Thread safety: none.
class MarkWriter {
 public:
  // All outlive this.
  MarkWriter(GrammarBuilder& builder, TermStore& store, std::span<const ControlToken> tokens)
      : builder_(builder), store_(store), tokens_(tokens) {}

  // The mark, with the control tokens in it as such. Requires: well-formed UTF-8.
  Part part(std::string_view mark) const;
  // The mark is a token that ends the answer: no grammar writes it.
  bool ends_answer(std::string_view mark) const;

 private:
  const ControlToken* token_at(std::string_view text) const;

  GrammarBuilder& builder_;
  TermStore& store_;
  std::span<const ControlToken> tokens_;
};

}  // namespace kvasir::grammar
