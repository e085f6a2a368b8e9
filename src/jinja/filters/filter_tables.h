// The filters, one table per file of this folder; builtin.h's find_filter searches them all.
#pragma once

#include <span>

#include "jinja/builtin.h"

namespace kvasir::jinja {

std::span<const Builtin> text_filters();      // strings to strings
std::span<const Builtin> number_filters();    // numbers and conversions
std::span<const Builtin> sequence_filters();  // whole sequences and dicts
std::span<const Builtin> select_filters();    // item by item: map, select, reject and their attr forms
std::span<const Builtin> order_filters();     // sorting, grouping, extremes

// The value that `attribute=` of a filter names: "a.b.0" walks attributes, an integer indexes, none is the item itself.
Result<Value> attribute_of(Runtime& runtime, const Value& item, const Value& attribute);
// Lower-cased if it is a string: the key of filters that ignore case.
Value ignoring_case(const Value& value);

}  // namespace kvasir::jinja
