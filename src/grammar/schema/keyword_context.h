// What the keywords of one schema say so far.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "grammar/schema/evaluator.h"

namespace kvasir::grammar {

// The conjunction of keywords, or, where the schema is meant as its complement, the union of their complements.
//
// Thread safety: none.
class KeywordContext {
 public:
  // All outlive this.
  KeywordContext(SchemaEvaluator& evaluator, const JsonValue& schema, bool is_complement);

  SchemaEvaluator& evaluator() { return evaluator_; }
  CellAlgebra& algebra() { return evaluator_.algebra(); }
  SchemaNames& names() { return evaluator_.names(); }
  TermStore& store() { return evaluator_.store(); }
  bool is_complement() const { return is_complement_; }

  // Null when the schema has no such keyword.
  const JsonValue* find(std::string_view keyword) const;
  const JsonValue& schema() const { return schema_; }
  SchemaName name_of(const JsonValue& schema) { return evaluator_.name_of(schema); }
  // The set of a schema, or of its complement.
  Result<const Cells*> cells_of(const JsonValue& schema, bool is_complement);

  // One more condition.
  Status add(const Cells& holds);
  // One more condition, in the form that this context wants: complemented already if is_complement().
  Status add_as_is(const Cells& cells);
  // Conditions on one type alone; other values fulfil them.
  Status add_numbers(const NumberSet& set);
  Status add_strings(const StringCell& cell);
  Status add_arrays(const ArrayCell& cell);
  Status add_objects(const ObjectCell& cell);

  const Cells& result() const { return result_; }
  void set_result(Cells cells) { result_ = std::move(cells); }

  // The keyword takes fewer values here than it may.
  void note_narrowed(const JsonValue& keyword, std::string_view reason);
  // .. and the result cannot name those that are missing.
  void narrow(const JsonValue& keyword, std::string_view reason);
  // The value is, or is within, a keyword of this schema.
  std::unexpected<Error> fail(const JsonValue& value, std::string_view what, ErrorKind kind = ErrorKind::kUsage);
  Result<std::uint32_t> count_of(const JsonValue& keyword);
  Result<Decimal> number_of(const JsonValue& keyword);

 private:
  template <typename Cell>
  Status add_of_type(std::vector<Cell> Cells::*type, const Cell& cell);

  SchemaEvaluator& evaluator_;
  const JsonValue& schema_;
  bool is_complement_;
  Cells result_;
};

}  // namespace kvasir::grammar
