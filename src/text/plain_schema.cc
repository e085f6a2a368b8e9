#include "text/plain_schema.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::text {
namespace {

using jinja::Value;
using Entries = std::vector<Value::Entry>;

bool is_null_type(const Value& type) { return type.is_string() && type.as_string() == "null"; }

bool is_null_schema(const Value& schema) {
  const Value* type = schema.is_dict() ? schema.as_dict().find("type") : nullptr;
  return type != nullptr && is_null_type(*type);
}

// The first that is not null; none when there is no such.
const Value* first_of(const Value& list, bool (*is_null)(const Value&)) {
  const auto& items = list.as_list().items;
  const auto first = std::ranges::find_if(items, [&](const Value& item) { return !is_null(item); });
  return first == items.end() ? nullptr : &*first;
}

bool is_alternatives(std::string_view key) { return key == "anyOf" || key == "oneOf" || key == "allOf"; }

void set_member(std::string_view key, Value value, Entries& entries) {
  const auto old = std::ranges::find_if(entries,
                                        [&](const auto& entry) { return entry.first.as_string() == key; });
  if (old != entries.end()) {
    old->second = std::move(value);
  } else {
    entries.emplace_back(Value::string(std::string(key)), std::move(value));
  }
}

Value plain_schema(const Value& schema);

Value plain_properties(const Value& properties) {
  if (!properties.is_dict()) return properties;
  Entries entries;
  for (const auto& [name, schema] : properties.as_dict().entries()) {
    entries.emplace_back(name, plain_schema(schema));
  }
  return Value::dict(std::move(entries));
}

void add_plain_member(const std::string& key, const Value& value, Entries& entries) {
  if (key == "type") {
    const Value* type = value.is_list() ? first_of(value, is_null_type) : &value;
    if (type != nullptr && type->is_string() && !is_null_type(*type)) set_member(key, *type, entries);
  } else if (key == "properties") {
    set_member(key, plain_properties(value), entries);
  } else if (key == "items" || key == "additionalProperties") {
    set_member(key, plain_schema(value), entries);
  } else {
    set_member(key, value, entries);
  }
}

Value plain_schema(const Value& schema) {
  if (!schema.is_dict()) return schema;
  Entries entries;
  for (const auto& [key, value] : schema.as_dict().entries()) {
    if (!is_alternatives(key.as_string()) || !value.is_list()) {
      add_plain_member(key.as_string(), value, entries);
      continue;
    }
    const Value* chosen = first_of(value, is_null_schema);
    if (chosen == nullptr || !chosen->is_dict()) continue;
    const Value inner = plain_schema(*chosen);
    for (const auto& [name, member] : inner.as_dict().entries())
      set_member(name.as_string(), member, entries);
  }
  const auto has = [&](std::string_view key) {
    return std::ranges::any_of(entries, [&](const auto& entry) { return entry.first.as_string() == key; });
  };
  if (!has("type")) {
    const bool is_object = has("properties") || has("$ref");
    set_member("type", Value::string(is_object ? "object" : "string"), entries);
  }
  return Value::dict(std::move(entries));
}

Value with_description(const Value& schema) {
  if (!schema.is_dict() || schema.as_dict().find("description") != nullptr) return schema;
  Entries entries = schema.as_dict().entries();
  set_member("description", Value::string(""), entries);
  return Value::dict(std::move(entries));
}

// Command R+'s template wants to know of what every array and every object within the parameters is.
Value with_element_types(const Value& schema, bool is_outermost) {
  if (!schema.is_dict()) return schema;
  Entries entries = schema.as_dict().entries();
  std::string type;
  for (auto& [key, value] : entries) {
    const std::string& name = key.as_string();
    if (name == "type" && value.is_string()) type = value.as_string();
    if (name == "items" || name == "additionalProperties") value = with_element_types(value, false);
    if (name != "properties" || !value.is_dict()) continue;
    Entries properties = value.as_dict().entries();
    for (auto& property : properties) {
      property.second = with_description(with_element_types(property.second, false));
    }
    value = Value::dict(std::move(properties));
  }
  const std::string_view of_elements = type == "array" ? "items" : type == "object" ? "additionalProperties" : "";
  if (of_elements.empty() || is_outermost) return Value::dict(std::move(entries));
  const auto has_schema = std::ranges::any_of(entries, [&](const auto& entry) {
    return entry.first.as_string() == of_elements && entry.second.is_dict();
  });
  if (!has_schema) {
    set_member(of_elements, Value::dict({{Value::string("type"), Value::string("string")}}), entries);
  }
  return Value::dict(std::move(entries));
}

}  // namespace

Value with_plain_schemas(const Value& tools) {
  if (!tools.is_list()) return tools;
  std::vector<Value> plain;
  for (const Value& tool : tools.as_list().items) {
    const Value* function = tool.is_dict() ? tool.as_dict().find("function") : nullptr;
    const Value* schema = function != nullptr && function->is_dict() ? function->as_dict().find("parameters")
                                                                     : nullptr;
    if (schema == nullptr) {
      plain.push_back(tool);
      continue;
    }
    Entries members = function->as_dict().entries();
    set_member("parameters", with_element_types(plain_schema(*schema), /*is_outermost=*/true), members);
    Entries entries = tool.as_dict().entries();
    set_member("function", Value::dict(std::move(members)), entries);
    plain.push_back(Value::dict(std::move(entries)));
  }
  return Value::list(std::move(plain));
}

}  // namespace kvasir::text
