// Grammars beside a vocabulary of single bytes, for tests of languages.
#pragma once

#include <memory>
#include <string_view>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/regex/term_store.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Token i is the byte i.
std::shared_ptr<const Vocabulary> byte_vocabulary();

// make(store) gives the grammar, or an error.
template <typename Make>
Result<std::shared_ptr<const CompiledGrammar>> compile_for_bytes(const Make& make) {
  auto store = std::make_unique<TermStore>();
  KVASIR_TRY(Grammar grammar, make(*store));
  return CompiledGrammar::create(std::move(store), std::move(grammar), byte_vocabulary());
}

bool accepts_bytes(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text);

}  // namespace kvasir::grammar
