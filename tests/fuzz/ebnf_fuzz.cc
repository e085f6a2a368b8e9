// Any bytes as a grammar in both dialects: an error of one line, or a guide without dead ends.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "grammar/ebnf/ebnf_grammar.h"
#include "guide_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvasir::grammar;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const EbnfDialect dialect : {EbnfDialect::kGbnf, EbnfDialect::kXGrammar}) {
    auto store = std::make_unique<TermStore>(3'000);
    auto made = grammar_from_ebnf(*store, input, {.dialect = dialect, .tokens = {.find = {}, .num_tokens = 256}});
    if (!made) {
      check_message(made.error());
    } else {
      walk_guide(std::move(store), std::move(*made), static_cast<std::uint32_t>(size));
    }
  }
  return 0;
}
