// A value as JSON: json.dumps(), behind the tojson filter.
#pragma once

#include <string>

#include "jinja/runtime.h"

namespace kvasir::jinja {

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

}  // namespace kvasir::jinja
