// A JSON document as it is written: members in their order, numbers as text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::grammar {

// Thread safety: immutable once read.
struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string text;                 // of a string, decoded; of a number, as written
  std::string key;                  // of a member
  std::vector<std::unique_ptr<JsonValue>> children;  // elements or members
  const JsonValue* parent = nullptr;
  std::uint32_t position = 0;       // in the order of the text: the same in every run, unlike an address

  bool is_object() const { return kind == Kind::kObject; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_number() const { return kind == Kind::kNumber; }
  bool is_bool() const { return kind == Kind::kFalse || kind == Kind::kTrue; }
  // The member of this name; null when there is none.
  const JsonValue* find(std::string_view name) const;
  // The place in the document (RFC 6901): "/properties/a/items/0"; empty for the root.
  std::string pointer() const;
};

// kUsage: no JSON, or a key twice in one object (with its pointer). kUnmet: more than 64 levels, or an enum of more than
// 20,000 values (likewise).
Result<std::unique_ptr<const JsonValue>> read_json(std::string_view text);

// The value a pointer names, from `root`; null when there is none. Percent signs are not decoded.
const JsonValue* find_pointer(const JsonValue& root, std::string_view pointer);

// As JSON has it: strings and numbers by value, objects whatever the order of their members.
bool is_equal(const JsonValue& a, const JsonValue& b);

}  // namespace kvasir::grammar
