#include "grammar/schema/equal_schemas.h"

#include <algorithm>
#include <array>

namespace kvasir::grammar {
namespace {

bool has_no_effect(std::string_view keyword) {
  static constexpr std::array kNames = std::to_array<std::string_view>(
      {"$comment", "default", "deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly"});
  return std::ranges::find(kNames, keyword) != kNames.end();
}

bool holds_schemas_by_key(std::string_view keyword) {
  static constexpr std::array kNames = std::to_array<std::string_view>(
      {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"});
  return std::ranges::find(kNames, keyword) != kNames.end();
}

}  // namespace

EqualSchemas::EqualSchemas(const JsonValue& root) { visit(root, Reading::kSchema); }

// A reference may lead to a list of schemas by key and mean a schema: what is data in one of the two is data.
EqualSchemas::Reading EqualSchemas::reading_of_member(Reading parent, std::string_view key) {
  if (parent == Reading::kData || key == "enum" || key == "const") return Reading::kData;
  return parent == Reading::kSchema && holds_schemas_by_key(key) ? Reading::kSchemasByKey : Reading::kSchema;
}

Fingerprint::Value EqualSchemas::visit(const JsonValue& value, Reading reading) {
  if (firsts_.size() <= value.position) firsts_.resize(value.position + 1);
  Fingerprint hash(static_cast<std::uint64_t>(value.kind));
  hash.add(std::string_view(value.text));
  for (const auto& child : value.children) {
    const Reading inner = value.is_object() ? reading_of_member(reading, child->key) : reading;
    const Fingerprint::Value own = visit(*child, inner);
    if (reading == Reading::kSchema && value.is_object() && has_no_effect(child->key)) continue;
    hash.add(std::string_view(child->key));
    hash.add(own.first);
    hash.add(own.second);
  }
  firsts_[value.position] = found_.try_emplace(hash.value(), &value).first->second;
  return hash.value();
}

}  // namespace kvasir::grammar
