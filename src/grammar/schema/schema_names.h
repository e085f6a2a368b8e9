// Names for conjunctions of schemas.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "grammar/schema/cells.h"
#include "grammar/schema/equal_schemas.h"
#include "grammar/schema/json_value.h"

namespace kvasir::grammar {

// A schema of the document, or a value of it that is meant as itself; or its complement.
struct SchemaLiteral {
  const JsonValue* schema = nullptr;
  bool is_value = false;
  bool is_complement = false;

  // By place in the document, so that a guide is the same in every run. Requires: schemas of one document.
  friend std::strong_ordering operator<=>(const SchemaLiteral& a, const SchemaLiteral& b) {
    return std::tuple(a.schema->position, a.is_value, a.is_complement) <=>
           std::tuple(b.schema->position, b.is_value, b.is_complement);
  }
  friend bool operator==(const SchemaLiteral&, const SchemaLiteral&) = default;
};

// Thread safety: none.
class SchemaNames {
 public:
  SchemaNames() {
    name_of(std::vector<SchemaLiteral>());
    literals_.push_back({});  // kNoValue, which no conjunction is found by
  }

  // Equal schemas get one name from now on; null: each has its own. The argument outlives this.
  void join_equal(const EqualSchemas* equals) { equals_ = equals; }

  SchemaName name_of(const SchemaLiteral& literal) { return name_of(std::vector{literal}); }
  // true and complements of false are left out; false, and a schema beside its complement, make kNoValue.
  SchemaName name_of(std::vector<SchemaLiteral> literals);
  SchemaName both(SchemaName a, SchemaName b);
  // The values that are not in the set, as a union.
  std::vector<SchemaName> complement(SchemaName name);

  const std::vector<SchemaLiteral>& literals(SchemaName name) const { return literals_[name]; }
  std::size_t size() const { return literals_.size(); }

 private:
  const EqualSchemas* equals_ = nullptr;
  std::vector<std::vector<SchemaLiteral>> literals_;  // by name, ascending
  std::map<std::vector<SchemaLiteral>, SchemaName> found_;
};

}  // namespace kvasir::grammar
