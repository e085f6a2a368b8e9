#include "jinja/access.h"

#include <limits>
#include <memory>

#include "jinja/builtin.h"
#include "jinja/number.h"
#include "jinja/python_string.h"
#include "jinja/text_form.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

std::string object_description(const Value& object) {
  if (object.is_none()) return "None";
  return fmt::format("'{} object'", object.type_name());
}

Value no_attribute(const Value& object, const std::string& name) {
  return Value::undefined(fmt::format("{} has no attribute '{}'", object_description(object), name));
}

// A position within [0, size), counted from the end when negative; empty outside.
std::optional<std::size_t> resolve_index(std::int64_t index, std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index);
}

Result<std::optional<Value>> indexed(Runtime& runtime, const Value& object, std::int64_t index) {
  if (object.is_list()) {
    const List& list = object.as_list();
    if (list.kind > ListKind::kRange) return std::nullopt;
    const auto position = resolve_index(index, list.items.size());
    if (!position) return std::nullopt;
    return list.items[*position];
  }
  if (!object.is_string()) return std::nullopt;
  const Text& text = object.text();
  const auto position = resolve_index(index, text.num_code_points);
  if (!position) return std::nullopt;
  const std::string_view bytes = text.bytes;
  if (text.is_ascii()) return part_of(text, bytes.substr(*position, 1));
  KVASIR_CHECKED(runtime.charge_bytes(text.bytes.size()));
  const std::size_t begin = byte_offset(bytes, *position);
  return part_of(text, bytes.substr(begin, byte_offset(bytes.substr(begin), 1)));
}

struct SliceRange {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::size_t count = 0;
};

// Python's slice.indices.
Result<SliceRange> resolve_slice(const Value& start, const Value& stop, const Value& step, std::size_t size) {
  for (const Value* bound : {&start, &stop, &step}) {
    if (!bound->is_none() && !bound->integral()) {
      return template_error("slice bounds must be integers or none, not '{}'", bound->type_name());
    }
  }
  const auto length = static_cast<std::int64_t>(size);
  SliceRange range{.start = 0, .step = step.integral().value_or(1), .count = 0};
  if (range.step == 0) return template_error("slice step cannot be zero");
  const bool backward = range.step < 0;
  const auto clamp = [&](const Value& bound, std::int64_t if_none) {
    if (bound.is_none()) return if_none;
    std::int64_t position = *bound.integral();
    if (position < 0) position = position < -length ? -1 : position + length;
    const std::int64_t low = backward ? -1 : 0;
    const std::int64_t high = backward ? length - 1 : length;
    if (*bound.integral() < 0 && position < 0) return low;
    return std::min(position, high);
  };
  range.start = clamp(start, backward ? length - 1 : 0);
  const std::int64_t end = clamp(stop, backward ? -1 : length);
  const std::int64_t distance = backward ? range.start - end : end - range.start;
  if (distance > 0) {
    const std::uint64_t stride =
        backward ? 0 - static_cast<std::uint64_t>(range.step) : static_cast<std::uint64_t>(range.step);
    range.count = static_cast<std::size_t>((static_cast<std::uint64_t>(distance) - 1) / stride + 1);
  }
  return range;
}

template <class Take>
void for_each_index(const SliceRange& range, Take take) {
  std::int64_t position = range.start;
  for (std::size_t i = 0; i < range.count; ++i) {
    take(static_cast<std::size_t>(position));
    if (i + 1 < range.count) position += range.step;
  }
}

Result<Value> slice_text(Runtime& runtime, const Text& text, const SliceRange& range) {
  KVASIR_CHECKED(runtime.charge_bytes(text.bytes.size()));
  const std::string_view bytes = text.bytes;
  TracedText out;
  if (range.step == 1 && range.count > 0) {
    const auto first = static_cast<std::size_t>(range.start);
    const std::size_t begin = text.is_ascii() ? first : byte_offset(bytes, first);
    const std::size_t size = text.is_ascii() ? range.count : byte_offset(bytes.substr(begin), range.count);
    out.append_part(text, begin, size);
  } else if (range.count > 0) {
    KVASIR_CHECKED(runtime.charge(text.num_code_points / 4));
    const auto chars = characters(text.bytes);
    for_each_index(range, [&](std::size_t i) {
      out.append_part(text, static_cast<std::size_t>(chars[i].data() - bytes.data()), chars[i].size());
    });
  }
  return std::move(out).to_value(text.is_markup);
}

}  // namespace

std::optional<Value> find_attribute(const Value& object, const std::string& name) {
  if (object.is_object()) return object.as_object().attribute(name);
  if (is_mutating_method(object, name) || name.starts_with("__")) {
    return Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, object.type_name()));
  }
  if (object.is_list() && object.as_list().kind == ListKind::kGroup) {
    if (name == "grouper") return object.as_list().items[0];
    if (name == "list") return object.as_list().items[1];
  }
  if (const Builtin* method = find_method(object, name)) {
    return Value::object(std::make_shared<BuiltinFunction>(*method, object));
  }
  return std::nullopt;
}

Result<Value> get_attribute(Runtime& runtime, const Value& object, const std::string& name) {
  KVASIR_CHECKED(runtime.charge(1));
  if (object.is_undefined()) return template_error("{}", object.undefined_reason());
  if (!name.starts_with("__")) {
    if (auto attribute = find_attribute(object, name)) return std::move(*attribute);
  }
  if (object.is_dict()) {
    if (const Value* value = object.as_dict().find(std::string_view(name))) return *value;
  }
  return no_attribute(object, name);
}

Result<Value> get_item(Runtime& runtime, const Value& object, const Value& key) {
  KVASIR_CHECKED(runtime.charge(1));
  if (object.is_undefined()) return template_error("{}", object.undefined_reason());
  if (object.is_dict()) {
    if (const Value* value = object.as_dict().find(key)) return *value;
  } else if (const auto index = key.integral()) {
    KVASIR_TRY(auto item, indexed(runtime, object, *index));
    if (item) return std::move(*item);
  }
  if (key.is_string()) {
    if (auto attribute = find_attribute(object, key.as_string())) return std::move(*attribute);
    return no_attribute(object, key.as_string());
  }
  KVASIR_TRY(const std::string shown, to_text(runtime, key));
  return Value::undefined(fmt::format("{} has no element {}", object_description(object), shown));
}

Result<Value> get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                        const Value& step) {
  if (object.is_undefined()) return template_error("{}", object.undefined_reason());
  if (object.is_string()) {
    KVASIR_TRY(const SliceRange range, resolve_slice(start, stop, step, object.text().num_code_points));
    return slice_text(runtime, object.text(), range);
  }
  if (!object.is_list() || object.as_list().kind > ListKind::kRange) {
    return Value::undefined(fmt::format("{} cannot be sliced", object_description(object)));
  }
  const List& list = object.as_list();
  KVASIR_TRY(const SliceRange range, resolve_slice(start, stop, step, list.items.size()));
  KVASIR_CHECKED(runtime.charge(range.count));
  std::vector<Value> items;
  items.reserve(range.count);
  for_each_index(range, [&](std::size_t i) { items.push_back(list.items[i]); });
  return runtime.make_list(std::move(items), list.kind == ListKind::kGroup ? ListKind::kTuple : list.kind);
}

std::optional<std::size_t> length_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return 0;
    case Value::Kind::kString:
      return value.text().num_code_points;
    case Value::Kind::kList:
      return value.as_list().items.size();
    case Value::Kind::kDict:
      return value.as_dict().entries().size();
    case Value::Kind::kObject:
      return value.as_object().length();
    default:
      return std::nullopt;
  }
}

Result<std::shared_ptr<const List>> iterate(Runtime& runtime, const Value& value) {
  if (value.is_list()) {
    KVASIR_CHECKED(runtime.charge(1));
    return value.shared_list();
  }
  std::vector<Value> items;
  KVASIR_CHECKED(runtime.charge(1 + length_of(value).value_or(0)));
  if (value.is_string()) {
    for (const std::string_view c : characters(value.as_string())) items.push_back(part_of(value.text(), c));
  } else if (value.is_dict()) {
    for (const auto& entry : value.as_dict().entries()) items.push_back(entry.first);
  } else if (auto* iterator = value.is_object() ? dynamic_cast<Iterator*>(&value.as_object()) : nullptr) {
    items = iterator->drain();
    KVASIR_CHECKED(runtime.charge(items.size()));
  } else if (!value.is_undefined()) {
    return template_error("'{}' object is not iterable", value.type_name());
  }
  KVASIR_TRY(const Value list, runtime.make_list(std::move(items)));
  return list.shared_list();
}

}  // namespace kvasir::jinja
