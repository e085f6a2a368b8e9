#include "jinja/json_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/code_point.h"
#include "jinja/comparison.h"
#include "jinja/number.h"

namespace kvasir::jinja {
namespace {

void append_utf16_escape(char32_t c, std::string& out) {
  const auto unit = [&](std::uint32_t value) { fmt::format_to(std::back_inserter(out), "\\u{:04x}", value); };
  if (c < 0x10000) return unit(static_cast<std::uint32_t>(c));
  const std::uint32_t offset = static_cast<std::uint32_t>(c) - 0x10000;
  unit(0xD800 + (offset >> 10));
  unit(0xDC00 + (offset & 0x3FF));
}

void append_json_string(std::string_view text, bool ensure_ascii, std::string& out) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    switch (c.value) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (c.value < 0x20 || (ensure_ascii && c.value >= 0x7F)) {
          append_utf16_escape(c.value, out);
        } else {
          out += text.substr(i, c.size_bytes);
        }
    }
    i += c.size_bytes;
  }
  out += '"';
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style, std::string& out)
      : runtime_(runtime), style_(style), out_(out) {}

  Status write(const Value& value, std::size_t level) {
    KVASIR_CHECKED(runtime_.charge(1));
    switch (value.kind()) {
      case Value::Kind::kNone:
      case Value::Kind::kBool:
      case Value::Kind::kInt:
      case Value::Kind::kBigInt:
      case Value::Kind::kFloat:
        out_ += scalar(value);
        return {};
      case Value::Kind::kString:
        return write_string(value.as_string());
      case Value::Kind::kList: {
        const ListKind kind = value.as_list().kind;
        if (kind > ListKind::kGroup) break;
        return write_list(value.as_list(), level);
      }
      case Value::Kind::kDict:
        return write_dict(value.as_dict(), level);
      case Value::Kind::kUndefined:
      case Value::Kind::kObject:
        break;
    }
    return template_error("tojson: an object of type {} has no JSON form", value.type_name());
  }

 private:
  static std::string scalar(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kBool:
        return value.as_bool() ? "true" : "false";
      case Value::Kind::kInt:
        return fmt::format("{}", value.as_int());
      case Value::Kind::kBigInt:
        return value.digits();
      case Value::Kind::kFloat:
        return json_float(value.as_float());
      default:
        return "null";
    }
  }

  Status write_string(const std::string& text) {
    KVASIR_CHECKED(runtime_.charge_bytes(text.size()));
    append_json_string(text, style_.ensure_ascii, out_);
    return {};
  }

  Status new_line(std::size_t level) {
    if (!style_.pretty) return {};
    KVASIR_CHECKED(runtime_.charge_bytes(style_.indent.size() * level));
    out_ += '\n';
    for (std::size_t i = 0; i < level; ++i) out_ += style_.indent;
    return {};
  }

  // The separator is charged because a template can make it as long as it likes.
  Status separate(const std::string& separator) {
    KVASIR_CHECKED(runtime_.charge(separator.size() / 64));
    out_ += separator;
    return {};
  }

  Status write_list(const List& list, std::size_t level) {
    if (list.items.empty()) {
      out_ += "[]";
      return {};
    }
    out_ += '[';
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) KVASIR_CHECKED(separate(style_.item_separator));
      KVASIR_CHECKED(new_line(level + 1));
      KVASIR_CHECKED(write(list.items[i], level + 1));
    }
    KVASIR_CHECKED(new_line(level));
    out_ += ']';
    return {};
  }

  Status write_dict(const Dict& dict, std::size_t level) {
    if (dict.entries().empty()) {
      out_ += "{}";
      return {};
    }
    std::vector<Value::Entry> entries = dict.entries();
    if (style_.sort_keys) {
      KVASIR_CHECKED(
          sort_values(runtime_, entries, [](const Value::Entry& entry) { return entry.first; }, false));
    }
    out_ += '{';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) KVASIR_CHECKED(separate(style_.item_separator));
      KVASIR_CHECKED(new_line(level + 1));
      const Value& key = entries[i].first;
      if (key.is_undefined()) return template_error("tojson: a key is undefined");
      KVASIR_CHECKED(write_string(key.is_string() ? key.as_string() : scalar(key)));
      KVASIR_CHECKED(separate(style_.key_separator));
      KVASIR_CHECKED(write(entries[i].second, level + 1));
    }
    KVASIR_CHECKED(new_line(level));
    out_ += '}';
    return {};
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string& out_;
};

}  // namespace

Status append_json(Runtime& runtime, const Value& value, const JsonStyle& style, std::string& out) {
  return JsonWriter(runtime, style, out).write(value, 0);
}

}  // namespace kvasir::jinja
