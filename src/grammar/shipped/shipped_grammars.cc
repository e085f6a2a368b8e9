#include "grammar/shipped/shipped_grammars.h"

#include <algorithm>

namespace kvasir::grammar {

std::optional<std::string_view> shipped_grammar(std::string_view name) {
  const auto grammars = shipped_grammars();
  const auto found = std::ranges::find(grammars, name, &ShippedGrammar::name);
  if (found == grammars.end()) return std::nullopt;
  return found->text;
}

}  // namespace kvasir::grammar
