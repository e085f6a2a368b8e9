#include "jinja/loop.h"

#include <fmt/format.h>

#include "jinja/builtin.h"
#include "jinja/comparison.h"

namespace kvasir::jinja {
namespace {

Loop& loop_of(const Value& self) { return static_cast<Loop&>(self.as_object()); }

Result<Value> cycle(Runtime&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) return template_error("loop.cycle needs at least one item");
  return loop_of(self).cycle(arguments.positional);
}

Result<Value> changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(Value values, runtime.make_list(arguments.positional, ListKind::kTuple));
  KVASIR_TRY(const bool result, loop_of(self).changed(runtime, std::move(values)));
  return Value::boolean(result);
}

constexpr Builtin kLoopMethods[] = {
    {"changed", 0, {kAnyArguments}, changed},
    {"cycle", 0, {kAnyArguments}, cycle},
};

Value bound(const Builtin& method, Loop& loop) {
  return Value::object(std::make_shared<BuiltinFunction>(method, Value::object(loop.shared_from_this())));
}

struct Counter {
  std::string_view name;
  std::int64_t (*read)(std::int64_t index0, std::int64_t length, std::int64_t depth0);
};
constexpr Counter kCounters[] = {
    {"index", [](std::int64_t i, std::int64_t, std::int64_t) { return i + 1; }},
    {"index0", [](std::int64_t i, std::int64_t, std::int64_t) { return i; }},
    {"length", [](std::int64_t, std::int64_t n, std::int64_t) { return n; }},
    {"revindex", [](std::int64_t i, std::int64_t n, std::int64_t) { return n - i; }},
    {"revindex0", [](std::int64_t i, std::int64_t n, std::int64_t) { return n - i - 1; }},
    {"depth", [](std::int64_t, std::int64_t, std::int64_t d) { return d + 1; }},
    {"depth0", [](std::int64_t, std::int64_t, std::int64_t d) { return d; }},
};

}  // namespace

std::string Loop::repr() const { return fmt::format("<LoopContext {}/{}>", next_, items_.size()); }

std::optional<Value> Loop::attribute(std::string_view name) {
  const std::size_t index0 = next_ - 1;
  for (const Counter& counter : kCounters) {
    if (counter.name != name) continue;
    return Value::integer(counter.read(static_cast<std::int64_t>(index0),
                                       static_cast<std::int64_t>(items_.size()),
                                       static_cast<std::int64_t>(depth_)));
  }
  if (name == "first") return Value::boolean(index0 == 0);
  if (name == "last") return Value::boolean(next_ == items_.size());
  if (name == "previtem")
    return index0 > 0 ? items_[index0 - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem")
    return next_ < items_.size() ? items_[next_] : Value::undefined("there is no next item");
  if (const Builtin* method = find_builtin(kLoopMethods, name)) return bound(*method, *this);
  return std::nullopt;
}

Result<Value> Loop::call(Runtime& /*runtime*/, Arguments arguments) {
  if (!node_.recursive) return template_error("only a loop marked 'recursive' can be called");
  if (arguments.positional.size() != 1 || !arguments.keywords.empty()) {
    return template_error("loop(items) takes one argument, got {}", arguments.positional.size());
  }
  return interpreter_.call_loop(node_, closure_, arguments.positional[0], depth_ + 1);
}

void Loop::release() {
  closure_.reset();
  items_.clear();
  last_changed_.reset();
}

Result<bool> Loop::changed(Runtime& runtime, Value values) {
  if (last_changed_) {
    KVASIR_TRY(const bool same, equal(runtime, *last_changed_, values));
    if (same) return false;
  }
  last_changed_ = std::move(values);
  return true;
}

}  // namespace kvasir::jinja
