// Schemas of a document that say the same.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/regex/fingerprint.h"
#include "grammar/schema/json_value.h"

namespace kvasir::grammar {

// Schemas that differ in titles, descriptions, defaults and examples alone are equal. They are told apart by 128-bit
// hashes.
//
// Thread safety: immutable.
class EqualSchemas {
 public:
  // The document outlives this. Requires: a reference means the same wherever it stands.
  explicit EqualSchemas(const JsonValue& root);

  // The first of the document that equals this one. Requires: a value of the document.
  const JsonValue* first(const JsonValue& schema) const { return firsts_[schema.position]; }

 private:
  // How a value is read: members without an effect count for nothing in a schema, and for something elsewhere.
  enum class Reading : std::uint8_t { kSchema, kSchemasByKey, kData };
  struct Hash {
    std::size_t operator()(const Fingerprint::Value& value) const { return value.first; }
  };

  static Reading reading_of_member(Reading parent, std::string_view key);
  Fingerprint::Value visit(const JsonValue& value, Reading reading);

  std::vector<const JsonValue*> firsts_;  // by position
  std::unordered_map<Fingerprint::Value, const JsonValue*, Hash> found_;
};

}  // namespace kvasir::grammar
