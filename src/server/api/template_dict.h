// Dicts as chat templates read them, made member by member.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace kvasir::server::api {

using TemplateEntries = std::vector<jinja::Value::Entry>;

inline void add_member(TemplateEntries& entries, std::string_view key, jinja::Value value) {
  entries.emplace_back(jinja::Value::string(std::string(key)), std::move(value));
}
inline void add_member(TemplateEntries& entries, std::string_view key, std::string text) {
  add_member(entries, key, jinja::Value::string(std::move(text)));
}

}  // namespace kvasir::server::api
