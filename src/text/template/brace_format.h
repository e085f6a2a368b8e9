// Python's `format.format(...)`.
#pragma once

#include "text/template/runtime.h"

namespace kvasir::text::jinja {

// str.format as a method (see Builtin). Fields look attributes up as the sandbox does.
Result<Value> brace_format(Runtime& runtime, const Value& self, const Arguments& arguments);

}  // namespace kvasir::text::jinja
