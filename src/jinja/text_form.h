// A value as text: str() and repr().
#pragma once

#include <string>
#include <string_view>

#include "jinja/runtime.h"

namespace kvasir::jinja {

// Python's str(value): what `{{ value }}` prints. Undefined is empty.
Result<std::string> to_text(Runtime& runtime, const Value& value);
Status append_text(Runtime& runtime, const Value& value, std::string& out);
// With its origin.
Status append_text(Runtime& runtime, const Value& value, TracedText& out);
Result<Value> to_text_value(Runtime& runtime, const Value& value);

// Python's repr(value).
Status append_repr(Runtime& runtime, const Value& value, std::string& out);
void append_string_repr(std::string_view text, std::string& out);

// str.replace, charged for its result before it is made; a negative limit replaces all.
Result<Value> replace_text(Runtime& runtime, const Text& text, const std::string& old_text,
                           const Text& new_text, std::int64_t limit);

}  // namespace kvasir::jinja
