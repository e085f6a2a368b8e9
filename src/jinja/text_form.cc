#include "jinja/text_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/checked_math.h"
#include "base/code_point.h"
#include "jinja/number.h"
#include "jinja/python_string.h"

namespace kvasir::jinja {
namespace {

struct Brackets {
  std::string_view open;
  std::string_view close;
};

Brackets brackets_of(ListKind kind) {
  switch (kind) {
    case ListKind::kList:
      return {"[", "]"};
    case ListKind::kTuple:
    case ListKind::kGroup:
      return {"(", ")"};
    case ListKind::kRange:
      return {"range(", ")"};
    case ListKind::kDictKeys:
      return {"dict_keys([", "])"};
    case ListKind::kDictValues:
      return {"dict_values([", "])"};
    case ListKind::kDictItems:
      return {"dict_items([", "])"};
  }
  return {"[", "]"};
}

// A range is kept as its items; its start, stop and step show again in its repr.
void append_range_repr(const std::vector<Value>& items, std::string& out) {
  const std::int64_t start = items.empty() ? 0 : items.front().as_int();
  const std::int64_t step = items.size() < 2 ? 1 : items[1].as_int() - start;
  const std::int64_t stop = items.empty() ? 0 : items.back().as_int() + step;
  fmt::format_to(std::back_inserter(out), "range({}, {}", start, stop);
  if (step != 1) fmt::format_to(std::back_inserter(out), ", {}", step);
  out += ')';
}

Status append_list_repr(Runtime& runtime, const List& list, std::string& out) {
  if (list.kind == ListKind::kRange) {
    append_range_repr(list.items, out);
    return {};
  }
  const Brackets brackets = brackets_of(list.kind);
  out += brackets.open;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    KVASIR_CHECKED(append_repr(runtime, list.items[i], out));
  }
  const bool is_tuple = list.kind == ListKind::kTuple || list.kind == ListKind::kGroup;
  if (is_tuple && list.items.size() == 1) out += ',';
  out += brackets.close;
  return {};
}

Status append_dict_repr(Runtime& runtime, const Dict& dict, std::string& out) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out += ", ";
    first = false;
    KVASIR_CHECKED(append_repr(runtime, key, out));
    out += ": ";
    KVASIR_CHECKED(append_repr(runtime, value, out));
  }
  out += '}';
  return {};
}

void append_unprintable(char32_t c, std::string& out) {
  if (c < 0x100) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(c));
  } else if (c < 0x10000) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
  } else {
    fmt::format_to(std::back_inserter(out), "\\U{:08x}", static_cast<std::uint32_t>(c));
  }
}

}  // namespace

void append_string_repr(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    if (c.value == static_cast<char32_t>(quote) || c.value == '\\') {
      out += '\\';
      out += static_cast<char>(c.value);
    } else if (c.value == '\n') {
      out += "\\n";
    } else if (c.value == '\r') {
      out += "\\r";
    } else if (c.value == '\t') {
      out += "\\t";
    } else if (has_property(c.value, kPrintable)) {
      out += text.substr(i, c.size_bytes);
    } else {
      append_unprintable(c.value, out);
    }
    i += c.size_bytes;
  }
  out += quote;
}

Status append_repr(Runtime& runtime, const Value& value, std::string& out) {
  KVASIR_CHECKED(runtime.charge(1));
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      out += "Undefined";
      return {};
    case Value::Kind::kNone:
      out += "None";
      return {};
    case Value::Kind::kBool:
      out += value.as_bool() ? "True" : "False";
      return {};
    case Value::Kind::kInt:
      fmt::format_to(std::back_inserter(out), "{}", value.as_int());
      return {};
    case Value::Kind::kBigInt:
      out += value.digits();
      return {};
    case Value::Kind::kFloat:
      out += float_repr(value.as_float());
      return {};
    case Value::Kind::kString:
      KVASIR_CHECKED(runtime.charge_bytes(value.as_string().size()));
      if (value.text().is_markup) out += "Markup(";
      append_string_repr(value.as_string(), out);
      if (value.text().is_markup) out += ')';
      return {};
    case Value::Kind::kList:
      return append_list_repr(runtime, value.as_list(), out);
    case Value::Kind::kDict:
      return append_dict_repr(runtime, value.as_dict(), out);
    case Value::Kind::kObject:
      out += value.as_object().repr();
      return {};
  }
  return {};
}

Status append_text(Runtime& runtime, const Value& value, std::string& out) {
  if (value.is_undefined()) return {};
  if (!value.is_string()) return append_repr(runtime, value, out);
  KVASIR_CHECKED(runtime.charge_bytes(value.as_string().size()));
  out += value.as_string();
  return {};
}

Result<std::string> to_text(Runtime& runtime, const Value& value) {
  std::string out;
  KVASIR_CHECKED(append_text(runtime, value, out));
  return out;
}

Status append_text(Runtime& runtime, const Value& value, TracedText& out) {
  if (value.is_string()) {
    KVASIR_CHECKED(runtime.charge_bytes(value.as_string().size()));
    out.append(value.text());
    return {};
  }
  KVASIR_TRY(const std::string text, to_text(runtime, value));
  if (has_foreign(value)) {
    out.append_foreign(text);
  } else {
    out.append(text);
  }
  return {};
}

Result<Value> to_text_value(Runtime& runtime, const Value& value) {
  if (value.is_string()) return value;
  TracedText text;
  KVASIR_CHECKED(append_text(runtime, value, text));
  return runtime.make_string(std::move(text));
}

Result<Value> replace_text(Runtime& runtime, const Text& text, const std::string& old_text,
                           const Text& new_text, std::int64_t limit) {
  const std::string_view bytes = text.bytes;
  KVASIR_CHECKED(runtime.charge_bytes(2 * bytes.size()));
  std::size_t count = count_occurrences(bytes, old_text);
  if (limit >= 0) count = std::min(count, static_cast<std::size_t>(limit));
  const auto size = checked_mul(count, new_text.bytes.size() + 64 * new_text.foreign.size());
  KVASIR_CHECKED(runtime.charge_bytes(size.value_or(std::numeric_limits<std::size_t>::max() - 64)));
  TracedText out;
  std::size_t position = 0;
  for (; limit != 0; --limit) {
    const auto hit = find_bytes(bytes, old_text, position);
    if (!hit) break;
    out.append_part(text, position, *hit - position);
    out.append(new_text);
    position = *hit + old_text.size();
    if (!old_text.empty()) continue;
    // An empty pattern matches before every character and at the end.
    if (position == bytes.size()) return std::move(out).to_value();
    const std::size_t character = code_point_at(bytes, position).size_bytes;
    out.append_part(text, position, character);
    position += character;
  }
  out.append_part(text, position, bytes.size() - position);
  return std::move(out).to_value();
}

}  // namespace kvasir::jinja
