#include "grammar/schema/schema_names.h"

#include <algorithm>
#include <utility>

namespace kvasir::grammar {
namespace {

// Whether the schema is true, {}, or false.
bool is_trivial(const SchemaLiteral& literal, bool wanted) {
  if (literal.is_value) return false;
  const JsonValue& schema = *literal.schema;
  if (!wanted) return schema.kind == JsonValue::Kind::kFalse;
  return schema.kind == JsonValue::Kind::kTrue || (schema.is_object() && schema.children.empty());
}

bool is_always_true(const SchemaLiteral& literal) { return is_trivial(literal, !literal.is_complement); }
bool is_always_false(const SchemaLiteral& literal) { return is_trivial(literal, literal.is_complement); }

}  // namespace

SchemaName SchemaNames::name_of(std::vector<SchemaLiteral> literals) {
  for (SchemaLiteral& literal : literals) {
    if (equals_ != nullptr && !literal.is_value) literal.schema = equals_->first(*literal.schema);
  }
  if (std::ranges::any_of(literals, is_always_false)) return kNoValue;
  std::erase_if(literals, is_always_true);
  std::ranges::sort(literals);
  literals.erase(std::ranges::unique(literals).begin(), literals.end());
  for (std::size_t i = 0; i + 1 < literals.size(); ++i) {
    const bool is_same = literals[i].schema == literals[i + 1].schema && literals[i].is_value == literals[i + 1].is_value;
    if (is_same) return kNoValue;  // beside its complement
  }
  const auto [found, is_new] = found_.try_emplace(literals, static_cast<SchemaName>(literals_.size()));
  if (is_new) literals_.push_back(std::move(literals));
  return found->second;
}

SchemaName SchemaNames::both(SchemaName a, SchemaName b) {
  if (a == kNoValue || b == kNoValue) return kNoValue;
  if (a == kAnyValue || a == b) return b;
  if (b == kAnyValue) return a;
  std::vector<SchemaLiteral> literals = literals_[a];
  literals.insert(literals.end(), literals_[b].begin(), literals_[b].end());
  return name_of(std::move(literals));
}

std::vector<SchemaName> SchemaNames::complement(SchemaName name) {
  if (name == kNoValue) return {kAnyValue};
  const std::vector<SchemaLiteral> literals = literals_[name];
  std::vector<SchemaName> names;
  for (SchemaLiteral literal : literals) {
    literal.is_complement = !literal.is_complement;
    names.push_back(name_of(literal));
  }
  return names;
}

}  // namespace kvasir::grammar
