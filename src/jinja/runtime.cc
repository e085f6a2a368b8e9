#include "jinja/runtime.h"

namespace kvasir::jinja {
namespace {

// Objects live until the end of the render, so making one costs more than a node.
constexpr std::size_t kStepsPerObject = 8;

}  // namespace

Runtime::~Runtime() {
  for (const auto& object : objects_) object->release();
}

Status Runtime::charge(std::size_t steps) {
  if (steps > options_.max_steps - steps_) {
    steps_ = options_.max_steps;
    return limit_error("the render needs more than its limit of {} steps", options_.max_steps);
  }
  steps_ += steps;
  return {};
}

Result<Value> Runtime::checked(Value container) {
  if (const std::size_t depth = container.depth(); depth > kMaxValueDepth) {
    return limit_error("values nest {} levels deep, the limit is {}", depth, kMaxValueDepth);
  }
  return container;
}

Result<Value> Runtime::make_string(std::string utf8) {
  KVASIR_CHECKED(charge_bytes(utf8.size()));
  return Value::string(std::move(utf8));
}

Result<Value> Runtime::make_string(TracedText text) {
  KVASIR_CHECKED(charge_bytes(text.size()));
  KVASIR_CHECKED(charge(text.foreign().size() / 4));
  return std::move(text).to_value();
}

Result<Value> Runtime::make_list(std::vector<Value> items, ListKind kind) {
  KVASIR_CHECKED(charge(1 + items.size()));
  return checked(Value::list(std::move(items), kind));
}

Result<Value> Runtime::make_dict(std::vector<Value::Entry> entries) {
  KVASIR_CHECKED(charge(1 + 2 * entries.size()));
  for (const auto& [key, value] : entries) {
    if (!key.hashable()) {
      return template_error("a dict key must be a string, a number, a boolean or none, not '{}'",
                            key.type_name());
    }
  }
  return checked(Value::dict(std::move(entries)));
}

Result<Value> Runtime::make_iterator(std::string_view type_name, std::vector<Value> items) {
  KVASIR_CHECKED(charge(1 + items.size()));
  return checked(Value::object(std::make_shared<Iterator>(type_name, std::move(items))));
}

Result<Value> Runtime::adopt(std::shared_ptr<Object> object) {
  KVASIR_CHECKED(charge(kStepsPerObject));
  objects_.push_back(object);
  return Value::object(std::move(object));
}

}  // namespace kvasir::jinja
