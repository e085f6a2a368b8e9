// Strict reading of JSON: a value has the type that was asked for, or the request is refused.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"
#include "kvasir/ids.h"
#include "server/api/warnings.h"
#include "server/api_error.h"
#include "server/limits.h"

namespace kvasir::server::api {

using JsonElement = simdjson::dom::element;
using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;

// Owns the parsed form that elements point into.
class JsonDocument {
 public:
  // Errors (400): not JSON, nested too deep, invalid UTF-8, an integer beyond 64 bits (names the field), no
  // object, a member given twice: of which readers take the first and others the last (RFC 8259, 4). Half of a
  // surrogate pair is read as U+FFFD.
  static ApiResult<JsonDocument> parse(std::string_view body, const Limits& limits);

  JsonObject root() const { return root_; }

 private:
  JsonDocument(std::unique_ptr<simdjson::dom::parser> parser, JsonObject root)
      : parser_(std::move(parser)), root_(root) {}

  std::unique_ptr<simdjson::dom::parser> parser_;  // elements point to it, so it must not move
  JsonObject root_;
};

// Both ends belong to it, unless min is said to be below it.
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool is_above_min = false;

  bool contains(double number) const {
    return (is_above_min ? number > min : number >= min) && number <= max;
  }
};

// One field of a request with what it may hold. `name` is a path, such as "messages[2].role".
struct FieldInput {
  std::string name;
  JsonElement json;
  const Limits& limits;
  Range range = {};
  Warnings* warnings = nullptr;   // null: nobody reads them
  std::string_view meaning = {};  // as its row says

  // Tells the client "<name><what>".
  void warn(std::string_view what) const;
  FieldInput at(std::size_t index, JsonElement element) const;
  FieldInput at(std::string_view member, JsonElement element) const;
};

// "a string", "an integer", ...
std::string_view type_name(JsonElement json);
// A 400: "<name> must be <wanted>, got <what it is>".
std::unexpected<ApiError> wrong_type(const FieldInput& field, std::string_view wanted);

ApiResult<double> number_of(const FieldInput& field);  // also of a text: "0.7"
// A whole number, also one that is written 8.0 or "8"; 8.5, true and "" are none.
ApiResult<std::int64_t> integer_of(const FieldInput& field);
// The same, and no more than the limit.
ApiResult<std::int64_t> integer_within(const FieldInput& field, const Limit& limit);
ApiResult<bool> boolean_of(const FieldInput& field);  // also of a text, 1 and 0
ApiResult<std::string> string_of(const FieldInput& field);
ApiResult<JsonArray> array_of(const FieldInput& field);
ApiResult<JsonObject> object_of(const FieldInput& field);
// An array of integers that may be token ids: none is negative.
ApiResult<std::vector<TokenId>> token_ids_of(const FieldInput& field);
// The member's value; empty when it is absent or null.
std::optional<JsonElement> find_member(JsonObject object, std::string_view name);
// The member's text; empty when it is absent or no string.
std::string_view text_of_member(JsonObject object, std::string_view name);
// The member of `field`'s object; absent or null is an error.
ApiResult<FieldInput> required_member(const FieldInput& field, JsonObject object, std::string_view name);
ApiResult<std::string> required_string(const FieldInput& field, JsonObject object, std::string_view name);

// Any JSON as a value of the chat template.
jinja::Value to_template_value(JsonElement json);
jinja::Value to_template_value(JsonObject object);

}  // namespace kvasir::server::api
