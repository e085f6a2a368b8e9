// A value as text: str(), repr() and json.dumps().
#pragma once

#include <string>
#include <string_view>

#include "text/template/runtime.h"

namespace kvasir::text::jinja {

// Python's str(value): what `{{ value }}` prints. Undefined is empty.
Result<std::string> to_text(Runtime& runtime, const Value& value);
Status append_text(Runtime& runtime, const Value& value, std::string& out);

// Python's repr(value).
Status append_repr(Runtime& runtime, const Value& value, std::string& out);
void append_string_repr(std::string_view text, std::string& out);

// str.replace, charged for its result before it is made; a negative limit replaces all.
Result<Value> replace_text(Runtime& runtime, const std::string& text, const std::string& old_text,
                           const std::string& new_text, std::int64_t limit);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;  // one item a line, each level indented by `indent`
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Python's json.dumps. Errors (kUsage): a value JSON has no form for.
Status append_json(Runtime& runtime, const Value& value, const JsonStyle& style, std::string& out);

}  // namespace kvasir::text::jinja
