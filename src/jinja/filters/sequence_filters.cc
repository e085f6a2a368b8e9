#include <algorithm>

#include "base/checked_math.h"
#include "jinja/access.h"
#include "jinja/filters/filter_tables.h"
#include "jinja/operators.h"
#include "jinja/python_string.h"
#include "jinja/text_form.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

Result<Value> length(Runtime&, const Value& self, const Arguments&) {
  if (const auto size = length_of(self)) return Value::integer(static_cast<std::int64_t>(*size));
  return template_error("object of type '{}' has no length", self.type_name());
}

Result<Value> list(Runtime& runtime, const Value& self, const Arguments&) {
  KVASIR_TRY(const auto items, iterate(runtime, self));
  return runtime.make_list(items->items);
}

Result<Value> first(Runtime& runtime, const Value& self, const Arguments&) {
  const Value none_left = Value::undefined("No first item, sequence was empty.");
  if (self.is_object()) {
    if (auto* iterator = dynamic_cast<Iterator*>(&self.as_object()))
      return iterator->next().value_or(none_left);
  }
  if (self.is_string()) {
    KVASIR_TRY(Value item, get_item(runtime, self, Value::integer(0)));
    return item.is_undefined() ? none_left : item;
  }
  KVASIR_TRY(const auto items, iterate(runtime, self));
  return items->items.empty() ? none_left : items->items.front();
}

// Whether Python's reversed() takes the value: it has an end to start from.
bool reversible(const Value& value) { return value.is_list() || value.is_dict() || value.is_string(); }

Result<Value> last(Runtime& runtime, const Value& self, const Arguments&) {
  const Value none_left = Value::undefined("No last item, sequence was empty.");
  if (self.is_undefined()) return none_left;
  if (!reversible(self)) return template_error("'{}' object is not reversible", self.type_name());
  if (self.is_string()) {
    KVASIR_TRY(Value item, get_item(runtime, self, Value::integer(-1)));
    return item.is_undefined() ? none_left : item;
  }
  KVASIR_TRY(const auto items, iterate(runtime, self));
  return items->items.empty() ? none_left : items->items.back();
}

Result<Value> reverse(Runtime& runtime, const Value& self, const Arguments&) {
  if (self.is_string()) return get_slice(runtime, self, Value::none(), Value::none(), Value::integer(-1));
  KVASIR_TRY(const auto source, iterate(runtime, self));
  std::vector<Value> items(source->items.rbegin(), source->items.rend());
  if (reversible(self)) return runtime.make_iterator("list_reverseiterator", std::move(items));
  return runtime.make_list(std::move(items));
}

Result<Value> join(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const auto items, iterate(runtime, self));
  Value separator = Value::string("");
  if (!arguments.positional[0].is_missing()) {
    KVASIR_TRY(separator, to_text_value(runtime, arguments.positional[0]));
  }
  const Value attribute = arguments.positional[1].is_missing() ? Value::none() : arguments.positional[1];
  TracedText out;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    KVASIR_CHECKED(runtime.charge_bytes(separator.as_string().size()));
    if (i > 0) out.append(separator.text());
    KVASIR_TRY(const Value item, attribute_of(runtime, items->items[i], attribute));
    KVASIR_CHECKED(append_text(runtime, item, out));
  }
  return runtime.make_string(std::move(out));
}

Result<Value> with_default(Runtime&, const Value& self, const Arguments& arguments) {
  const bool replace =
      self.is_undefined() || (flag_argument(arguments.positional[1], false) && !truthy(self));
  if (!replace) return self;
  return arguments.positional[0].is_missing() ? Value::string("") : arguments.positional[0];
}

Result<Value> items(Runtime& runtime, const Value& self, const Arguments&) {
  if (self.is_undefined()) return runtime.make_generator({});
  if (!self.is_dict()) return template_error("items needs a mapping, not '{}'", self.type_name());
  KVASIR_TRY(const Value view, invoke(*find_method(self, "items"), runtime, self, {}));
  return runtime.make_generator(view.as_list().items);
}

// Rows of `linecount` items, the last one filled up.
Result<Value> batch(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const auto source, iterate(runtime, self));
  KVASIR_TRY(const std::int64_t row_size, int_argument(arguments.positional[0], "linecount", 0));
  const Value& filler = arguments.positional[1];
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : source->items) {
    if (static_cast<std::int64_t>(row.size()) == row_size) {
      KVASIR_TRY(Value full, runtime.make_list(std::move(row)));
      rows.push_back(std::move(full));
      row.clear();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(row_size, 0));
    if (!filler.is_missing() && !filler.is_none() && row.size() < wanted) {
      KVASIR_CHECKED(runtime.charge(wanted));
      row.resize(wanted, filler);
    }
    KVASIR_TRY(Value rest, runtime.make_list(std::move(row)));
    rows.push_back(std::move(rest));
  }
  return runtime.make_generator(std::move(rows));
}

// `slices` lists of nearly equal size, the short ones filled up.
Result<Value> slice(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const auto source, iterate(runtime, self));
  KVASIR_TRY(const std::int64_t num_slices, int_argument(arguments.positional[0], "slices", 0));
  if (num_slices == 0) return template_error("slice: division by zero");
  if (num_slices < 0) return runtime.make_generator({});
  KVASIR_CHECKED(runtime.charge(static_cast<std::size_t>(num_slices)));
  const Value& filler = arguments.positional[1];
  const std::size_t size = source->items.size();
  const std::size_t per_slice = size / static_cast<std::size_t>(num_slices);
  const std::size_t num_longer = size % static_cast<std::size_t>(num_slices);
  std::vector<Value> slices;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(num_slices); ++i) {
    const std::size_t end = begin + per_slice + (i < num_longer ? 1 : 0);
    std::vector<Value> part(source->items.begin() + static_cast<std::ptrdiff_t>(begin),
                            source->items.begin() + static_cast<std::ptrdiff_t>(end));
    if (!filler.is_missing() && !filler.is_none() && i >= num_longer) part.push_back(filler);
    KVASIR_TRY(Value made, runtime.make_list(std::move(part)));
    slices.push_back(std::move(made));
    begin = end;
  }
  return runtime.make_generator(std::move(slices));
}

Result<Value> attr(Runtime&, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const std::string name, string_argument(arguments.positional[0], "name", ""));
  if (self.is_undefined()) return template_error("{}", self.undefined_reason());
  if (auto attribute = find_attribute(self, name)) return std::move(*attribute);
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", self.type_name(), name));
}

// ` key="value"` for every entry that is neither none nor undefined.
Result<Value> xmlattr(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!self.is_dict()) return template_error("xmlattr needs a mapping, not '{}'", self.type_name());
  std::string out;
  for (const auto& [key, value] : self.as_dict().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    KVASIR_TRY(const std::string name, string_argument(key, "key", ""));
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      return template_error("xmlattr: '{}' cannot be an attribute name", name);
    }
    KVASIR_TRY(const std::string text, to_text(runtime, value));
    if (!out.empty()) out += ' ';
    out += escape_html(name) + "=\"" + escape_html(text) + "\"";
  }
  if (flag_argument(arguments.positional[0], true) && !out.empty()) out.insert(0, 1, ' ');
  return runtime.make_string(std::move(out));
}

constexpr Builtin kSequenceFilters[] = {
    {"attr", 1, {"name"}, attr},
    {"batch", 1, {"linecount", "fill_with"}, batch},
    {"count", 0, {}, length},
    {"d", 0, {"default_value", "boolean"}, with_default},
    {"default", 0, {"default_value", "boolean"}, with_default},
    {"first", 0, {}, first},
    {"items", 0, {}, items},
    {"join", 0, {"d", "attribute"}, join},
    {"last", 0, {}, last},
    {"length", 0, {}, length},
    {"list", 0, {}, list},
    {"reverse", 0, {}, reverse},
    {"slice", 1, {"slices", "fill_with"}, slice},
    {"xmlattr", 0, {"autospace"}, xmlattr},
};

}  // namespace

std::span<const Builtin> sequence_filters() { return kSequenceFilters; }

}  // namespace kvasir::jinja
