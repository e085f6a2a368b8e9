// The methods of Python's types that templates call, one table per type.
#pragma once

#include <span>

#include "jinja/builtin.h"

namespace kvasir::jinja {

std::span<const Builtin> string_methods();
std::span<const Builtin> string_predicates();  // str.isalpha and its kind
std::span<const Builtin> list_methods(ListKind kind);
std::span<const Builtin> dict_methods();
std::span<const Builtin> number_methods(Value::Kind kind);

}  // namespace kvasir::jinja
