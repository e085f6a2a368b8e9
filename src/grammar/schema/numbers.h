// Sets of numbers, and how JSON writes them.
#pragma once

#include <optional>
#include <vector>

#include "grammar/regex/term_store.h"
#include "grammar/schema/decimal.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// An end of an interval.
struct Bound {
  Decimal value = {};
  bool is_included = true;

  friend bool operator==(const Bound&, const Bound&) = default;
};

// Numbers that fulfil all of this.
struct NumberSet {
  std::optional<Bound> least = {};
  std::optional<Bound> greatest = {};
  std::optional<bool> is_integer = {};
  std::vector<Decimal> multiple_of = {};      // each above 0
  std::vector<Decimal> not_multiple_of = {};

  friend bool operator==(const NumberSet&, const NumberSet&) = default;
};

NumberSet intersected(const NumberSet& a, const NumberSet& b);
// The numbers that are not in the set, as a union.
std::vector<NumberSet> complement(const NumberSet& set);
// Surely without a number; a set that is empty for a reason of its divisors is not seen.
bool is_empty(const NumberSet& set);

// The numbers as decimal texts: no integer has a fraction, an exponent or a minus before zero; other numbers have up to
// 24 digits before and 24 behind the point, and an exponent of at most two digits where the set is without bounds. Beside bounds
// there is no exponent. kUnmet: a divisor with more than 10,000 remainders, or with more than 15 digits behind the point.
Result<TermId> number_texts(TermStore& store, const NumberSet& set);
// The texts that are a number's only one, so that two texts are two numbers, also read as doubles: no
// exponent, no zero behind the last digit of a fraction, no minus before zero, at most 15 digits where there is a
// fraction. Errors: as number_texts().
Result<TermId> distinct_number_texts(TermStore& store, const NumberSet& set);

}  // namespace kvasir::grammar
