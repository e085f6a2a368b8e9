#include "server/api/json_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/lone_surrogates.h"
#include "base/printable.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;
using simdjson::dom::element_type;

constexpr std::size_t kShownBytes = 24;  // of a body that is no JSON

ApiError refusal(simdjson::error_code code, std::string_view body, const Limits& limits) {
  switch (code) {
    case simdjson::EMPTY:
      return {400, "the body is empty; it must be a JSON object"};
    case simdjson::DEPTH_ERROR:
      return beyond(limits.json_depth);
    case simdjson::INCORRECT_TYPE:
      return {400, "the body must be a JSON object"};
    default:
      return {400, fmt::format("the body is not valid JSON: {}; it begins {}", simdjson::error_message(code),
                               printable_line(body.substr(0, kShownBytes)))};
  }
}

// The ends of a type are limits that nobody chose: they are named only to a number beyond them.
std::string range_text(const Range& range, std::string_view kind, double number) {
  constexpr double kLimitOfType = std::numeric_limits<std::int32_t>::max();
  const bool has_min = range.min > -kLimitOfType || number < range.min;
  const bool has_max = range.max < kLimitOfType || number > range.max;
  const std::string_view above = range.is_above_min ? "above" : "of at least";
  if (std::isinf(range.min) && std::isinf(range.max)) return fmt::format("{} of at most 64 bits", kind);
  if (!has_max) return fmt::format("{} {} {}", kind, above, range.min);
  if (!has_min) return fmt::format("{} of at most {}", kind, range.max);
  if (range.is_above_min) return fmt::format("{} above {} and at most {}", kind, range.min, range.max);
  return fmt::format("{} between {} and {}", kind, range.min, range.max);
}

std::unexpected<ApiError> out_of_range(const FieldInput& field, std::string_view kind, double number) {
  return bad_request(fmt::format("{} must be {}, got {}", field.name, range_text(field.range, kind, number),
                                 printable_line(simdjson::minify(field.json))),
                     field.name);
}

bool is_oversized_integer(simdjson::ondemand::value& value) {
  const std::string_view token = value.raw_json_token();  // and the space behind it
  const std::string_view digits = token.substr(token.starts_with('-') ? 1 : 0);
  const std::string_view rest =
      digits.substr(std::min(digits.size(), digits.find_first_not_of("0123456789")));
  const bool is_integer = digits.size() > rest.size() && digits[0] != '0' &&
                          rest.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return is_integer && value.get_int64().error() && value.get_uint64().error();
}

// The parser refuses integers beyond 64 bits like any other nonsense, without a name. Where at or behind
// `value` the first one is, such as ".seed"; none where there is none so many levels down. The path is made
// on the way back, so that it costs nothing as long as nothing is found.
std::optional<std::string> oversized_integer(simdjson::ondemand::value value, std::int64_t max_depth) {
  using simdjson::ondemand::json_type;
  json_type type{};
  if (max_depth == 0 || value.type().get(type)) return std::nullopt;
  if (type == json_type::number && is_oversized_integer(value)) return std::string();
  simdjson::ondemand::value inner;
  if (type == json_type::array) {
    std::size_t index = 0;
    for (auto item : value.get_array()) {
      if (item.get(inner)) return std::nullopt;
      if (const auto found = oversized_integer(inner, max_depth - 1))
        return fmt::format("[{}]{}", index, *found);
      ++index;
    }
  }
  if (type != json_type::object) return std::nullopt;
  for (auto field : value.get_object()) {
    std::string_view key;
    if (field.unescaped_key().get(key) || field.value().get(inner)) return std::nullopt;
    const std::string name = printable(key);
    if (const auto found = oversized_integer(inner, max_depth - 1)) return "." + name + *found;
  }
  return std::nullopt;
}

std::optional<std::string> oversized_integer(std::string_view body, std::int64_t max_depth) {
  const simdjson::padded_string padded(body);
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::value root;
  if (parser.iterate(padded).get(document) || document.get_value().get(root)) return std::nullopt;
  return oversized_integer(root, max_depth);
}

// Where in `json` an object has a member twice, such as "[2].role"; none where all are distinct. The path is
// made on the way back, so that it costs nothing as long as nothing is found.
std::optional<std::string> member_given_twice(JsonElement json);

std::optional<std::string> member_given_twice(JsonObject object) {
  std::vector<std::string_view> names;
  for (const auto [name, value] : object) names.push_back(name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) return "." + printable(*twice);
  for (const auto [name, value] : object) {
    if (const auto inner = member_given_twice(value)) return fmt::format(".{}{}", printable(name), *inner);
  }
  return std::nullopt;
}

std::optional<std::string> member_given_twice(JsonElement json) {
  if (json.is_object()) return member_given_twice(JsonObject(json.get_object()));
  if (!json.is_array()) return std::nullopt;
  const JsonArray array = json.get_array();
  std::size_t index = 0;
  for (const JsonElement item : array) {
    if (const auto inner = member_given_twice(item)) return fmt::format("[{}]{}", index, *inner);
    ++index;
  }
  return std::nullopt;
}

// The whole text as a number, as vLLM reads "0.7"; none where it is another text, or has no end.
template <class Number>
std::optional<Number> spelt(JsonElement json) {
  if (!json.is_string()) return std::nullopt;
  const std::string_view text = json.get_string().value();
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return std::nullopt;
  }
  return number;
}

std::optional<double> number_in(JsonElement json) {
  if (json.is_number()) return json.get_double().value();
  return spelt<double>(json);
}

// Many languages write every number as a fraction, 8.0, and forms every value as a text, "8".
std::optional<std::int64_t> whole_number_of(JsonElement json) {
  constexpr double kEnd = 9223372036854775808.0;  // of int64
  std::int64_t integer = 0;
  if (!json.get_int64().get(integer)) return integer;
  if (const auto written = spelt<std::int64_t>(json)) return written;
  const std::optional<double> number = number_in(json);
  if (!number || *number != std::floor(*number) || *number < -kEnd || *number >= kEnd) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

// A boolean as forms write it.
std::optional<bool> spelt_boolean(JsonElement json) {
  if (const auto bit = spelt<std::int64_t>(json); bit && (*bit == 0 || *bit == 1)) return *bit == 1;
  std::int64_t number = -1;
  if (!json.get_int64().get(number) && (number == 0 || number == 1)) return number == 1;
  if (!json.is_string()) return std::nullopt;
  const std::string_view word = json.get_string().value();
  for (const std::string_view yes : {"true", "True", "TRUE"}) {
    if (word == yes) return true;
  }
  for (const std::string_view no : {"false", "False", "FALSE"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

}  // namespace

ApiResult<JsonDocument> JsonDocument::parse(std::string_view body, const Limits& limits) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (body.starts_with(kByteOrderMark)) body.remove_prefix(kByteOrderMark.size());
  auto parser = std::make_unique<simdjson::dom::parser>();
  JsonObject root;
  auto code = parser->allocate(body.size() + 1, static_cast<std::size_t>(limits.json_depth.max));
  if (!code) code = parser->parse(body.data(), body.size()).get_object().get(root);
  if (code == simdjson::STRING_ERROR) {
    if (const auto replaced = with_replaced_lone_surrogates(body)) return parse(*replaced, limits);
  }
  if (code == simdjson::NUMBER_ERROR) {
    const auto path = oversized_integer(body, limits.json_depth.max);
    if (path && path->starts_with('.')) {
      const std::string name = path->substr(1);  // without the dot
      return bad_request(fmt::format("{} must be an integer of at most 64 bits, up to {}", name,
                                     std::numeric_limits<std::uint64_t>::max()),
                         name);
    }
  }
  if (code) return std::unexpected(refusal(code, body, limits));
  if (const auto path = member_given_twice(root)) {
    const std::string name = path->substr(1);  // without the dot
    return bad_request(name + " is given twice", name);
  }
  return JsonDocument(std::move(parser), root);
}

void FieldInput::warn(std::string_view what) const {
  if (warnings != nullptr) warnings->add(name + std::string(what));
}

FieldInput FieldInput::at(std::size_t index, JsonElement element) const {
  return {fmt::format("{}[{}]", name, index), element, limits, {}, warnings};
}

FieldInput FieldInput::at(std::string_view member, JsonElement element) const {
  return {fmt::format("{}.{}", name, printable(member)), element, limits, {}, warnings};
}

std::string_view type_name(JsonElement json) {
  switch (json.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::INT64:
    case element_type::UINT64:
      return "an integer";
    case element_type::DOUBLE:
      return "a fraction";
    case element_type::STRING:
      return "a string";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
  }
  return "something else";
}

std::unexpected<ApiError> wrong_type(const FieldInput& field, std::string_view wanted) {
  return bad_request(fmt::format("{} must be {}, got {}", field.name, wanted, type_name(field.json)),
                     field.name, "invalid_type");
}

ApiResult<double> number_of(const FieldInput& field) {
  const std::optional<double> number = number_in(field.json);
  if (!number) return wrong_type(field, "a number");
  if (!field.range.contains(*number)) return out_of_range(field, "a number", *number);
  return *number;
}

ApiResult<std::int64_t> integer_of(const FieldInput& field) {
  const std::optional<std::int64_t> whole = whole_number_of(field.json);
  if (!whole) {
    const std::optional<double> number = number_in(field.json);
    const bool is_beyond_int64 = number && *number == std::floor(*number);
    if (is_beyond_int64) return out_of_range(field, "an integer", *number);
    return wrong_type(field, "an integer");
  }
  const auto number = static_cast<double>(*whole);
  if (!field.range.contains(number)) return out_of_range(field, "an integer", number);
  return *whole;
}

ApiResult<std::int64_t> integer_within(const FieldInput& field, const Limit& limit) {
  KVASIR_TRY(const std::int64_t value, integer_of(field));
  if (value > limit.max) return std::unexpected(beyond(limit, value, field.name));
  return value;
}

ApiResult<bool> boolean_of(const FieldInput& field) {
  if (field.json.is_bool()) return field.json.get_bool().value();
  if (const auto word = spelt_boolean(field.json)) return *word;
  return wrong_type(field, "a boolean");
}

ApiResult<std::string> string_of(const FieldInput& field) {
  if (!field.json.is_string()) return wrong_type(field, "a string");
  return std::string(field.json.get_string().value());
}

ApiResult<JsonArray> array_of(const FieldInput& field) {
  if (!field.json.is_array()) return wrong_type(field, "an array");
  return field.json.get_array().value();
}

ApiResult<JsonObject> object_of(const FieldInput& field) {
  if (!field.json.is_object()) return wrong_type(field, "an object");
  return field.json.get_object().value();
}

ApiResult<std::vector<TokenId>> token_ids_of(const FieldInput& field) {
  KVASIR_TRY(const JsonArray array, array_of(field));
  std::vector<TokenId> ids;
  for (const JsonElement json : array) {
    FieldInput id = field.at(ids.size(), json);
    id.range = {0, std::numeric_limits<TokenId>::max()};
    KVASIR_TRY(const std::int64_t token, integer_of(id));
    ids.push_back(static_cast<TokenId>(token));
  }
  return ids;
}

std::optional<JsonElement> find_member(JsonObject object, std::string_view name) {
  JsonElement value;
  if (object.at_key(name).get(value) || value.is_null()) return std::nullopt;
  return value;
}

std::string_view text_of_member(JsonObject object, std::string_view name) {
  const auto member = find_member(object, name);
  return member && member->is_string() ? member->get_string().value() : std::string_view();
}

ApiResult<FieldInput> required_member(const FieldInput& field, JsonObject object, std::string_view name) {
  const auto member = find_member(object, name);
  if (!member) {
    const std::string path = fmt::format("{}.{}", field.name, name);
    return bad_request(path + " is missing", path, "missing_parameter");
  }
  return field.at(name, *member);
}

ApiResult<std::string> required_string(const FieldInput& field, JsonObject object, std::string_view name) {
  KVASIR_TRY(const FieldInput member, required_member(field, object, name));
  return string_of(member);
}

Value to_template_value(JsonObject object) {
  std::vector<Value::Entry> entries;
  for (const auto [key, value] : object) {
    entries.emplace_back(Value::string(std::string(key)), to_template_value(value));
  }
  return Value::dict(std::move(entries));
}

Value to_template_value(JsonElement json) {
  switch (json.type()) {
    case element_type::ARRAY: {
      const JsonArray array = json.get_array().value();
      std::vector<Value> items;
      for (const JsonElement item : array) items.push_back(to_template_value(item));
      return Value::list(std::move(items));
    }
    case element_type::OBJECT:
      return to_template_value(json.get_object().value());
    case element_type::INT64:
      return Value::integer(json.get_int64().value());
    case element_type::UINT64:
      return Value::big_integer(std::to_string(json.get_uint64().value()));
    case element_type::DOUBLE:
      return Value::number(json.get_double().value());
    case element_type::STRING:
      return Value::string(std::string(json.get_string().value()));
    case element_type::BOOL:
      return Value::boolean(json.get_bool().value());
    case element_type::NULL_VALUE:
      break;
  }
  return Value::none();
}

}  // namespace kvasir::server::api
