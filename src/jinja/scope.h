// Variables of one block, chained to the block around it.
#pragma once

#include <map>
#include <memory>
#include <string_view>

#include "jinja/value.h"

namespace kvasir::jinja {

// Names are views into the parsed template, which outlives every render.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::map<std::string_view, Value> variables;

  // Null when neither this scope nor one around it has the name.
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
      if (const auto it = scope->variables.find(name); it != scope->variables.end()) return &it->second;
    }
    return nullptr;
  }
};

}  // namespace kvasir::jinja
