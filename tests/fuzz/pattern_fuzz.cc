// Any bytes as a pattern of JSON Schema and as a regex guide: an error of one line, or a guide without dead ends.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/derivatives.h"
#include "grammar/regex/pattern.h"
#include "guide_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvasir::grammar;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const PatternFit fit : {PatternFit::kWhole, PatternFit::kFound}) {
    auto store = std::make_unique<TermStore>(3'000);
    const auto term = pattern_language(*store, input, fit);
    if (!term) {
      check_message(term.error());
      continue;
    }
    Derivatives derivatives(*store);
    if (!derivatives.is_alive(*term)) continue;
    GrammarBuilder builder(*store);
    const RuleId start = builder.declare("guide");
    builder.define(start, builder.text(*term));
    Grammar grammar = builder.finish(start);
    walk_guide(std::move(store), std::move(grammar), static_cast<std::uint32_t>(size));
  }
  return 0;
}
