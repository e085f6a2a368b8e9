// Numbers as Python writes, reads, compares and computes them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace kvasir::jinja {

// Compares bools, ints and floats by their exact mathematical value; NaN is unordered.
// Requires: both numeric().
std::partial_ordering compare_numbers(const Value& a, const Value& b);

// The same as a total order (below, equal, above 0), NaN first: what a dict sorts its keys by.
int key_order(const Value& a, const Value& b);

// Python's repr: the shortest digits that read back, "1.0" for whole numbers, an exponent from 1e16 up
// and below 1e-4.
std::string float_repr(double value);

// int(text, base) and float(text): surrounding whitespace, a sign and single underscores between digits
// are allowed; base 0 reads the prefix. Empty when the text is no number (or no 64-bit integer).
std::optional<std::int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// Python's round half to even at a decimal position.
double round_decimal(double value, int digits);

}  // namespace kvasir::jinja
