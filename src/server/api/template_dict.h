// Dicts as chat templates read them, made member by member.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/value.h"

namespace kvasir::server::api {

using TemplateEntries = std::vector<text::jinja::Value::Entry>;

inline void add_member(TemplateEntries& entries, std::string_view key, text::jinja::Value value) {
  entries.emplace_back(text::jinja::Value::string(std::string(key)), std::move(value));
}
inline void add_member(TemplateEntries& entries, std::string_view key, std::string text) {
  add_member(entries, key, text::jinja::Value::string(std::move(text)));
}

}  // namespace kvasir::server::api
