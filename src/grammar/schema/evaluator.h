// Schemas as sets of values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_store.h"
#include "grammar/schema/cell_algebra.h"
#include "grammar/schema/cells.h"
#include "grammar/schema/equal_schemas.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/references.h"
#include "grammar/schema/schema_names.h"
#include "grammar/schema/schema_notes.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Looks into schemas one level deep: what elements and members are stays a name.
//
// Errors name the keyword by its JSON pointer: kUsage for what no schema may say, kUnmet for what is not supported.
//
// Thread safety: none.
class SchemaEvaluator {
 public:
  // All outlive this.
  SchemaEvaluator(const JsonValue& root, TermStore& store, Derivatives& derivatives)
      : store_(store), derivatives_(derivatives), algebra_(store, derivatives, names_), references_(root), equals_(root) {
    if (!references_.has_inner_ids()) names_.join_equal(&equals_);
  }

  SchemaName name_of(const JsonValue& schema) { return names_.name_of(SchemaLiteral{.schema = &schema}); }
  // The reference lives as long as this.
  Result<const Cells*> cells(SchemaName name);

  // The same for who can do without: null where the schema is refused, or is being looked into already. Such a refusal
  // is not noted.
  const Cells* cells_if_known(SchemaName name);

  SchemaNames& names() { return names_; }
  CellAlgebra& algebra() { return algebra_; }
  TermStore& store() { return store_; }
  // Whether the text is one of the language's. Requires: well-formed UTF-8.
  bool has_text(TermId term, std::string_view text);
  Derivatives& derivatives() { return derivatives_; }
  const References& references() const { return references_; }
  // The value itself, as enum and const have it.
  Result<Cells> value_cells(const JsonValue& value);

  // Notes of what is narrowed, and of unknown keywords, are kept from now on, for each schema of its own. Requires: no
  // schema has a name.
  void keep_notes() {
    keeps_notes_ = true;
    names_.join_equal(nullptr);
  }
  bool keeps_notes() const { return keeps_notes_; }
  const SchemaNotes& notes() const { return notes_; }
  void note_ignored(const JsonValue& keyword) { notes_.ignored.insert(keyword.pointer()); }
  void note_narrowed(const JsonValue& keyword, std::string_view reason);
  // The error that names the note's place. `keyword` points to the keyword at fault, for skip().
  std::unexpected<Error> refuse(SchemaNote note, std::string keyword, ErrorKind kind);
  const std::string& refused_keyword() const { return refused_keyword_; }

  // Keywords that are read as if they were not there, by pointer.
  void skip(const std::set<std::string>& keywords) { skipped_ = keywords; }
  bool is_skipped(const JsonValue& keyword) const {
    return !skipped_.empty() && skipped_.contains(keyword.pointer());
  }
  std::size_t num_cells() const { return num_cells_; }

 private:
  Result<const Cells*> literal_cells(const SchemaLiteral& literal);
  Result<Cells> schema_cells(const JsonValue& schema, bool is_complement);

  TermStore& store_;
  Derivatives& derivatives_;
  SchemaNames names_;
  CellAlgebra algebra_;
  References references_;
  EqualSchemas equals_;
  std::map<SchemaName, Cells> cells_;
  std::map<SchemaLiteral, Cells> literal_cells_;
  std::set<SchemaLiteral> in_progress_;
  bool keeps_notes_ = false;
  SchemaNotes notes_;
  std::string refused_keyword_;
  std::set<std::string> skipped_;
  std::size_t num_cells_ = 0;
};

}  // namespace kvasir::grammar
