// What a schema loses on its way to a grammar.
#pragma once

#include <compare>
#include <optional>
#include <set>
#include <string>

namespace kvasir::grammar {

// One keyword and why it is noted.
struct SchemaNote {
  std::string pointer;  // of its value (RFC 6901)
  std::string keyword;
  std::string reason;

  friend auto operator<=>(const SchemaNote&, const SchemaNote&) = default;
};

// Thread safety: none.
struct SchemaNotes {
  std::set<SchemaNote> narrowed;   // fewer values than the keyword takes
  std::set<std::string> ignored;   // pointers of keywords and formats that say nothing here
  std::optional<SchemaNote> refused;
};

}  // namespace kvasir::grammar
