// Python's two string formatting languages: `format % values` and `format.format(...)`.
#pragma once

#include "text/template/runtime.h"

namespace kvasir::text::jinja {

// `format % values`; a tuple or a dict gives several values. Requires: format is a string.
Result<Value> percent_format(Runtime& runtime, const Value& format, const Value& values);

// str.format as a method (see Builtin). Fields look attributes up as the sandbox does.
Result<Value> brace_format(Runtime& runtime, const Value& self, const Arguments& arguments);

}  // namespace kvasir::text::jinja
