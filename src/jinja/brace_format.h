// Python's `format.format(...)`.
#pragma once

#include "jinja/runtime.h"

namespace kvasir::jinja {

// str.format as a method (see Builtin). Fields look attributes up as the sandbox does.
Result<Value> brace_format(Runtime& runtime, const Value& self, const Arguments& arguments);

}  // namespace kvasir::jinja
