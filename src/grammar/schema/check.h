// Which keywords of a schema a guide keeps.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema/schema_notes.h"
#include "grammar/schema/schema_options.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

struct SchemaReport {
  std::vector<SchemaNote> refused;   // the schema as a whole is refused for each of these
  std::vector<SchemaNote> narrowed;  // by pointer
  std::vector<std::string> ignored;  // pointers, ascending
  std::size_t num_cells = 0;         // cases of the schema and of all that it needs
  bool is_supported() const { return refused.empty(); }
};

// Reads the whole schema: behind a keyword that is refused it goes on as if the keyword were not there, 32 times at
// most. A schema that nothing satisfies is refused where
// empty_place() says. Thread-safe.
// kUsage: the text is no JSON, or no schema.
Result<SchemaReport> check_schema(std::string_view schema, const SchemaOptions& options = {});

}  // namespace kvasir::grammar
