// namespace(...): the only value a template can change.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/object.h"
#include "jinja/template_error.h"

namespace kvasir::jinja {

class Namespace final : public Object {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(std::string_view name) override {
    const auto it = attributes_.find(name);
    if (it == attributes_.end()) return std::nullopt;
    return it->second;
  }
  void release() override { attributes_.clear(); }

  // Errors (kUsage): a name that starts with an underscore.
  Status set(const std::string& name, const Value& value) {
    if (name.starts_with('_'))
      return template_error("a namespace cannot hold the underscore name '{}'", name);
    attributes_.insert_or_assign(name, value);
    return {};
  }

 private:
  std::map<std::string, Value, std::less<>> attributes_;
};

}  // namespace kvasir::jinja
