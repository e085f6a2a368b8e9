// Values with identity: namespaces, loops, macros, iterators and everything callable.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace kvasir::jinja {

class Runtime;

// The arguments of a call, apart from the value it is called on.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;

  // Takes a keyword argument out; missing() when it was not given.
  Value take_keyword(std::string_view name);
};

// One render owns its objects (Runtime::adopt), so no object is shared between threads.
class Object : public std::enable_shared_from_this<Object> {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  virtual std::string_view type_name() const = 0;
  virtual std::string repr() const { return fmt::format("<{}>", type_name()); }
  // Empty when there is no such attribute.
  virtual std::optional<Value> attribute(std::string_view /*name*/) { return std::nullopt; }
  virtual bool callable() const { return false; }
  virtual Result<Value> call(Runtime& runtime, Arguments arguments);
  // Items it counts, for `length`; empty when it has no length.
  virtual std::optional<std::size_t> length() const { return std::nullopt; }
  // As Value::depth. An object that holds values but is adopted by the runtime may answer 0.
  virtual std::size_t depth() const { return 0; }
  // Drops the values it holds, so that cycles through it end. Called once, after the render.
  virtual void release() {}
};

// A list that is read once: what generators (select, map, ...) and reversed() give.
class Iterator final : public Object {
 public:
  Iterator(std::string_view type_name, std::vector<Value> items);

  std::string_view type_name() const override { return type_name_; }
  std::size_t depth() const override { return depth_; }

  // The next unread item; empty at the end.
  std::optional<Value> next();
  // Takes every unread item.
  std::vector<Value> drain();

 private:
  std::string_view type_name_;
  std::vector<Value> items_;
  std::size_t next_ = 0;
  std::size_t depth_ = 1;
};

}  // namespace kvasir::jinja
