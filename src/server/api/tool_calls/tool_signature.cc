#include "server/api/tool_calls/tool_signature.h"

#include <algorithm>

#include "base/json_writer.h"
#include "server/api/tool_calls/call_parser.h"
#include "server/api/tool_calls/json_text.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

JsonTypes type_named(const Value& name) {
  constexpr std::pair<std::string_view, JsonTypes> kNames[] = {
      {"string", kStringType}, {"number", kNumberType}, {"integer", kNumberType}, {"boolean", kBooleanType},
      {"null", kNullType},     {"object", kObjectType}, {"array", kArrayType}};
  if (!name.is_string()) return kAnyType;
  for (const auto& [text, type] : kNames) {
    if (text == name.as_string()) return type;
  }
  return kAnyType;
}

JsonTypes type_of_value(const Value& value) {
  if (value.is_string()) return kStringType;
  if (value.is_none()) return kNullType;
  if (value.kind() == Value::Kind::kBool) return kBooleanType;
  if (value.is_list()) return kArrayType;
  return value.is_dict() ? kObjectType : kNumberType;
}

template <class TypeOf>
JsonTypes types_of_all(const Value& list, TypeOf type_of) {
  JsonTypes types = 0;
  for (const Value& item : list.as_list().items) types = static_cast<JsonTypes>(types | type_of(item));
  return types == 0 ? kAnyType : types;
}

JsonTypes types_of_schema(const Value& schema) {
  if (!schema.is_dict()) return kAnyType;
  const jinja::Dict& dict = schema.as_dict();
  if (const Value* type = dict.find("type")) {
    return type->is_list() ? types_of_all(*type, type_named) : type_named(*type);
  }
  if (const Value* values = dict.find("enum"); values != nullptr && values->is_list()) {
    return types_of_all(*values, type_of_value);
  }
  if (const Value* value = dict.find("const")) return type_of_value(*value);
  for (const std::string_view key : {"anyOf", "oneOf"}) {
    const Value* schemas = dict.find(key);
    if (schemas != nullptr && schemas->is_list()) return types_of_all(*schemas, types_of_schema);
  }
  return kAnyType;
}

const Value* member_of(const Value* value, std::string_view key) {
  return value != nullptr && value->is_dict() ? value->as_dict().find(key) : nullptr;
}

JsonTypes type_of_json(std::string_view json) {
  switch (json.front()) {
    case '"':
      return kStringType;
    case 't':
    case 'f':
      return kBooleanType;
    case 'n':
      return kNullType;
    case '{':
      return kObjectType;
    case '[':
      return kArrayType;
    default:
      return kNumberType;
  }
}

// The text's only value without its blanks, numbers as they stand; empty: it is no JSON.
std::string compact_json(std::string_view text) {
  JsonCopier copier;
  std::string json;
  TextStep step = TextStep::kMore;
  for (const char byte : without_blanks(text)) {
    if (step != TextStep::kMore) return {};
    step = copier.step(byte, json);
  }
  if (step == TextStep::kMore) step = copier.step(' ', json);  // ends a number or a word
  return step == TextStep::kDone || step == TextStep::kDoneBefore ? json : std::string();
}

// As Python writes them, which models that saw much of it do too.
std::string_view json_literal(std::string_view text) {
  if (text == "True") return "true";
  if (text == "False") return "false";
  return text == "None" ? "null" : text;
}

}  // namespace

JsonTypes ToolSignature::types_of(std::string_view argument) const {
  const auto found = std::ranges::find(arguments, argument,
                                       [](const auto& a) { return std::string_view(a.first); });
  return found == arguments.end() ? kAnyType : found->second;
}

std::vector<ToolSignature> tool_signatures(const Value& tools, std::span<const std::string> names) {
  std::vector<ToolSignature> signatures;
  for (const std::string& name : names) signatures.push_back({.name = name, .arguments = {}});
  if (!tools.is_list()) return signatures;
  for (const Value& tool : tools.as_list().items) {
    const Value* function = member_of(&tool, "function");
    const Value* name = member_of(function, "name");
    const Value* properties = member_of(member_of(function, "parameters"), "properties");
    if (name == nullptr || !name->is_string() || properties == nullptr || !properties->is_dict()) continue;
    const auto signature = std::ranges::find(signatures, name->as_string(), &ToolSignature::name);
    if (signature == signatures.end()) continue;
    for (const auto& [key, schema] : properties->as_dict().entries()) {
      if (key.is_string()) signature->arguments.emplace_back(key.as_string(), types_of_schema(schema));
    }
  }
  return signatures;
}

std::vector<std::string> text_arguments(const ToolSignature& tool) {
  std::vector<std::string> names;
  for (const auto& [name, types] : tool.arguments) {
    if (types == kStringType) names.push_back(name);
  }
  return names;
}

const ToolSignature* find_tool(std::span<const ToolSignature> tools, std::string_view name) {
  const auto found = std::ranges::find(tools, name, [](const auto& t) { return std::string_view(t.name); });
  return found == tools.end() ? nullptr : &*found;
}

std::string typed_json(std::string_view text, JsonTypes types) {
  if (types != kStringType) {
    const std::string value = compact_json(json_literal(text));
    if (!value.empty()) {
      const JsonTypes type = type_of_json(value);
      // A type that the schema does not name is better than a string that it does not name either.
      const bool takes_strings = (types & kStringType) != 0;
      const bool is_wanted = type == kStringType ? !takes_strings : (types & type) != 0 || !takes_strings;
      if (is_wanted) return value;
    }
  }
  std::string json;
  JsonWriter(json).value(text);
  return json;
}

}  // namespace kvasir::server::api
