#include "jinja/object.h"

#include <algorithm>
#include <iterator>

#include "jinja/template_error.h"

namespace kvasir::jinja {

Value Arguments::take_keyword(std::string_view name) {
  const auto it = std::find_if(keywords.begin(), keywords.end(),
                               [&](const auto& keyword) { return keyword.first == name; });
  if (it == keywords.end()) return Value::missing();
  std::pair<std::string, Value> taken = std::move(*it);
  keywords.erase(it);
  return std::move(taken.second);
}

Result<Value> Object::call(Runtime& /*runtime*/, Arguments /*arguments*/) {
  return template_error("'{}' object is not callable", type_name());
}

Iterator::Iterator(std::string_view type_name, std::vector<Value> items)
    : type_name_(type_name), items_(std::move(items)) {
  for (const Value& item : items_) depth_ = std::max(depth_, item.depth() + 1);
}

std::optional<Value> Iterator::next() {
  if (next_ == items_.size()) return std::nullopt;
  return items_[next_++];
}

std::vector<Value> Iterator::drain() {
  std::vector<Value> rest(std::make_move_iterator(items_.begin() + static_cast<std::ptrdiff_t>(next_)),
                          std::make_move_iterator(items_.end()));
  next_ = items_.size();
  return rest;
}

}  // namespace kvasir::jinja
