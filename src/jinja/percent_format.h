// Python's `format % values`.
#pragma once

#include "jinja/runtime.h"

namespace kvasir::jinja {

// `format % values`; a tuple or a dict gives several values. Requires: format is a string.
Result<Value> percent_format(Runtime& runtime, const Value& format, const Value& values);

}  // namespace kvasir::jinja
