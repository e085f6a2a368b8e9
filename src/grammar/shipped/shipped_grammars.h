// Grammars that come with the program, by name.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace kvasir::grammar {

struct ShippedGrammar {
  std::string_view name;  // its file's, without the ending
  std::string_view text;  // GBNF
};

// By name: arithmetic, json, sql_select.
std::span<const ShippedGrammar> shipped_grammars();
// The text of one; nothing when there is none of this name.
std::optional<std::string_view> shipped_grammar(std::string_view name);

}  // namespace kvasir::grammar
