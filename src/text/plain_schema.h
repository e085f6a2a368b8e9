// Tools whose schemas use only what every chat template knows.
#pragma once

#include "jinja/value.h"

namespace kvasir::text {

// The tools with one type for each value: of several, and of alternatives, the first that is not null. Some
// templates write a type for each value and know neither lists of types nor "null" (Hermes).
jinja::Value with_plain_schemas(const jinja::Value& tools);

}  // namespace kvasir::text
