#include "jinja/value.h"

#include <simdjson.h>

#include <algorithm>
#include <compare>

#include "jinja/number.h"
#include "jinja/object.h"
#include "jinja/python_string.h"
#include "jinja/template_error.h"

namespace kvasir::jinja {
namespace {

namespace dom = simdjson::dom;

std::shared_ptr<const Text> make_text(std::string utf8, bool is_markup) {
  const std::size_t length = num_code_points(utf8);
  return std::make_shared<const Text>(
      Text{.bytes = std::move(utf8), .num_code_points = length, .is_markup = is_markup});
}

// Keys of different classes are never equal; the order between classes only has to be some order.
int key_class(const Value& key) {
  switch (key.kind()) {
    case Value::Kind::kNone:
      return 0;
    case Value::Kind::kUndefined:
      return 4;
    case Value::Kind::kBool:
    case Value::Kind::kInt:
    case Value::Kind::kFloat:
      return 1;
    case Value::Kind::kBigInt:
      return 2;
    default:
      return 3;
  }
}

bool key_less(const Value& a, const Value& b) {
  const int class_a = key_class(a);
  const int class_b = key_class(b);
  if (class_a != class_b) return class_a < class_b;
  switch (class_a) {
    case 0:
    case 4:
      return false;
    case 1:
      return key_order(a, b) < 0;
    case 2:
      return a.digits() < b.digits();
    default:
      return a.as_string() < b.as_string();
  }
}

Result<Value> value_of_json(const dom::element& element, std::size_t depth) {
  if (depth > kMaxValueDepth)
    return limit_error("JSON nests deeper than the limit of {} levels", kMaxValueDepth);
  switch (element.type()) {
    case dom::element_type::NULL_VALUE:
      return Value::none();
    case dom::element_type::BOOL:
      return Value::boolean(bool{element});
    case dom::element_type::INT64:
      return Value::integer(std::int64_t{element});
    case dom::element_type::UINT64:
      return Value::big_integer(fmt::format("{}", std::uint64_t{element}));
    case dom::element_type::DOUBLE:
      return Value::number(double{element});
    case dom::element_type::STRING:
      return Value::string(std::string(std::string_view{element}));
    case dom::element_type::ARRAY: {
      std::vector<Value> items;
      for (const dom::element item : dom::array(element)) {
        KVASIR_TRY(Value value, value_of_json(item, depth + 1));
        items.push_back(std::move(value));
      }
      return Value::list(std::move(items));
    }
    case dom::element_type::OBJECT:
      break;
  }
  std::vector<Value::Entry> entries;
  for (const auto& [key, member] : dom::object(element)) {
    KVASIR_TRY(Value value, value_of_json(member, depth + 1));
    entries.emplace_back(Value::string(std::string(key)), std::move(value));
  }
  return Value::dict(std::move(entries));
}

}  // namespace

Value Value::undefined(std::string reason) {
  return holding(
      Undefined{.reason = std::make_shared<const std::string>(std::move(reason)), .missing = false});
}
Value Value::missing() { return holding(Undefined{.reason = nullptr, .missing = true}); }
Value Value::none() { return holding(None{}); }
Value Value::boolean(bool value) { return holding(value); }
Value Value::integer(std::int64_t value) { return holding(value); }
Value Value::big_integer(std::string digits) {
  return holding(BigInt{std::make_shared<const std::string>(std::move(digits))});
}
Value Value::number(double value) { return holding(value); }
Value Value::string(std::string utf8) { return holding(make_text(std::move(utf8), false)); }
Value Value::markup(std::string utf8) { return holding(make_text(std::move(utf8), true)); }
Value Value::traced(std::string utf8, std::vector<TextSpan> foreign, bool is_markup) {
  const std::size_t length = num_code_points(utf8);
  return holding(std::make_shared<const Text>(Text{.bytes = std::move(utf8),
                                                   .num_code_points = length,
                                                   .is_markup = is_markup,
                                                   .is_traced = true,
                                                   .foreign = std::move(foreign)}));
}

Value Value::list(std::vector<Value> items, ListKind kind) {
  std::size_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return holding(
      std::make_shared<const List>(List{.kind = kind, .items = std::move(items), .depth = depth + 1}));
}

Value Value::dict(std::vector<Entry> entries) {
  return holding(std::make_shared<const Dict>(std::move(entries)));
}
Value Value::object(std::shared_ptr<Object> object) { return holding(std::move(object)); }

bool Value::is_missing() const {
  const auto* undefined = std::get_if<Undefined>(&data_);
  return undefined != nullptr && undefined->missing;
}

bool Value::hashable() const { return !is_list() && !is_dict() && !is_object(); }

const std::string& Value::as_string() const { return text().bytes; }
const std::string& Value::digits() const { return *std::get<BigInt>(data_).digits; }

std::string Value::undefined_reason() const {
  const auto& undefined = std::get<Undefined>(data_);
  return undefined.reason ? *undefined.reason : "the value is undefined";
}

std::optional<std::int64_t> Value::integral() const {
  if (kind() == Kind::kBool) return as_bool() ? 1 : 0;
  if (kind() == Kind::kInt) return as_int();
  return std::nullopt;
}

std::optional<double> Value::numeric() const {
  if (kind() == Kind::kFloat) return as_float();
  if (const auto whole = integral()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::string_view Value::type_name() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kBigInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return text().is_markup ? "Markup" : "str";
    case Kind::kList:
      break;
    case Kind::kDict:
      return "dict";
    case Kind::kObject:
      return as_object().type_name();
  }
  switch (as_list().kind) {
    case ListKind::kList:
      return "list";
    case ListKind::kTuple:
    case ListKind::kGroup:
      return "tuple";
    case ListKind::kRange:
      return "range";
    case ListKind::kDictKeys:
      return "dict_keys";
    case ListKind::kDictValues:
      return "dict_values";
    case ListKind::kDictItems:
      return "dict_items";
  }
  return "object";
}

std::size_t Value::depth() const {
  switch (kind()) {
    case Kind::kList:
      return as_list().depth;
    case Kind::kDict:
      return as_dict().depth();
    case Kind::kObject:
      return as_object().depth();
    default:
      return 0;
  }
}

bool Value::same_as(const Value& other) const {
  if (kind() != other.kind()) return false;
  switch (kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return as_bool() == other.as_bool();
    case Kind::kInt:
      return as_int() == other.as_int();
    case Kind::kBigInt:
      return digits() == other.digits();
    case Kind::kFloat:
      return as_float() == other.as_float();
    case Kind::kString:
      return &text() == &other.text() || as_string() == other.as_string();
    case Kind::kList:
      return &as_list() == &other.as_list();
    case Kind::kDict:
      return &as_dict() == &other.as_dict();
    case Kind::kObject:
      return &as_object() == &other.as_object();
  }
  return false;
}

Result<Value> Value::from_json(std::string_view json) {
  dom::parser parser;
  dom::element root;
  if (const auto code = parser.parse(simdjson::padded_string(json)).get(root)) {
    return template_error("malformed JSON: {}", simdjson::error_message(code));
  }
  return value_of_json(root, 1);
}

Dict::Dict(std::vector<Value::Entry> entries) : entries_(std::move(entries)) {
  const auto sort_keys = [&] {
    order_.resize(entries_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::uint32_t>(i);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return key_less(entries_[a].first, entries_[b].first);
    });
  };
  sort_keys();
  std::vector<bool> dropped(entries_.size(), false);
  bool any_dropped = false;
  for (std::size_t i = 0; i + 1 < order_.size();) {
    std::size_t j = i + 1;
    for (; j < order_.size() && !key_less(entries_[order_[i]].first, entries_[order_[j]].first); ++j) {
      entries_[order_[i]].second = entries_[order_[j]].second;
      dropped[order_[j]] = any_dropped = true;
    }
    i = j;
  }
  if (any_dropped) {
    std::vector<Value::Entry> kept;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!dropped[i]) kept.push_back(std::move(entries_[i]));
    }
    entries_ = std::move(kept);
    sort_keys();
  }
  for (const auto& [key, value] : entries_) depth_ = std::max(depth_, value.depth() + 1);
}

const Value* Dict::find(const Value& key) const {
  if (!key.hashable()) return nullptr;
  const auto it = std::lower_bound(
      order_.begin(), order_.end(), key,
      [&](std::uint32_t i, const Value& wanted) { return key_less(entries_[i].first, wanted); });
  if (it == order_.end() || key_less(key, entries_[*it].first)) return nullptr;
  return &entries_[*it].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto before = [&](std::uint32_t i, std::string_view wanted) {
    const Value& candidate = entries_[i].first;
    return !candidate.is_string() || candidate.as_string() < wanted;
  };
  const auto it = std::lower_bound(order_.begin(), order_.end(), key, before);
  if (it == order_.end() || entries_[*it].first.as_string() != key) return nullptr;
  return &entries_[*it].second;
}

}  // namespace kvasir::jinja
