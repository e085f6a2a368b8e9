#include "grammar/schema/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace kvasir::grammar {
namespace {

using text::regex::CodePointSet;

constexpr std::uint32_t kMaxDigits = 24;       // on each side of the point
constexpr std::uint32_t kMaxIntegerDigits = 40;
constexpr std::uint32_t kMaxExactDigits = 15;  // that a double tells apart
constexpr std::uint32_t kMaxRemainders = 10'000;
constexpr std::size_t kMaxDivisorDigits = 15;  // behind the point

bool is_tighter_least(const Bound& a, const Bound& b) {
  return a.value > b.value || (a.value == b.value && !a.is_included);
}
bool is_tighter_greatest(const Bound& a, const Bound& b) {
  return a.value < b.value || (a.value == b.value && !a.is_included);
}

void append_new(std::vector<Decimal>& to, const std::vector<Decimal>& from) {
  for (const Decimal& value : from) {
    if (std::ranges::find(to, value) == to.end()) to.push_back(value);
  }
}

// Texts of decimals without a sign, bounded on one side.
class MagnitudeTexts {
 public:
  MagnitudeTexts(TermStore& store, bool has_fraction) : store_(store), has_fraction_(has_fraction) {}

  TermId any() {
    const TermId more = store_.repeat(digits('0', '9'), 0, (has_fraction_ ? kMaxDigits : kMaxIntegerDigits) - 1);
    return store_.concat(store_.any_of({store_.literal("0"), store_.concat(digits('1', '9'), more)}), any_fraction());
  }

  TermId at_least(const Bound& bound) {
    const std::string& whole = bound.value.whole();
    std::vector<TermId> texts = {longer_than(whole.size())};
    add_other_wholes(whole, /*greater=*/true, texts);
    texts.push_back(store_.concat(store_.literal(whole), fraction_at_least(bound)));
    return store_.any_of(std::move(texts));
  }

  TermId at_most(const Bound& bound) {
    const std::string& whole = bound.value.whole();
    std::vector<TermId> texts = {shorter_than(whole.size())};
    add_other_wholes(whole, /*greater=*/false, texts);
    texts.push_back(store_.concat(store_.literal(whole), fraction_at_most(bound)));
    return store_.any_of(std::move(texts));
  }

 private:
  TermId digits(char first, char last) {
    if (first > last) return kNothing;
    return store_.char_class(
        CodePointSet::of(static_cast<unsigned char>(first), static_cast<unsigned char>(last)));
  }
  TermId some_digits(std::uint32_t min, std::uint32_t max) { return store_.repeat(digits('0', '9'), min, max); }
  TermId any_fraction() {
    if (!has_fraction_) return kEmptyText;
    return store_.optional(store_.concat(store_.literal("."), some_digits(1, kMaxDigits)));
  }
  TermId zeros() { return store_.repeat(store_.literal("0"), 0, kMaxDigits); }
  // A fraction above zero behind the digits so far.
  TermId above_zero() {
    return store_.concat(zeros(), store_.concat(digits('1', '9'), some_digits(0, kMaxDigits)));
  }

  // Whole parts of more digits, which are greater.
  TermId longer_than(std::size_t num_digits) {
    const auto count = static_cast<std::uint32_t>(num_digits);
    const std::uint32_t most = std::max(count, has_fraction_ ? kMaxDigits : kMaxIntegerDigits);
    if (most == count) return kNothing;
    return store_.concat(digits('1', '9'), store_.concat(some_digits(count, most - 1), any_fraction()));
  }
  TermId shorter_than(std::size_t num_digits) {
    if (num_digits <= 1) return kNothing;
    const TermId more = some_digits(0, static_cast<std::uint32_t>(num_digits) - 2);
    return store_.concat(store_.any_of({store_.literal("0"), store_.concat(digits('1', '9'), more)}), any_fraction());
  }

  // Whole parts of as many digits that differ first at some place.
  void add_other_wholes(const std::string& whole, bool greater, std::vector<TermId>& texts) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const char least = i == 0 && whole.size() > 1 ? '1' : '0';
      const TermId other = greater ? digits(static_cast<char>(whole[i] + 1), '9')
                                   : digits(least, static_cast<char>(whole[i] - 1));
      const auto num_left = static_cast<std::uint32_t>(whole.size() - i - 1);
      const std::array<TermId, 4> parts = {store_.literal(whole.substr(0, i)), other,
                                           some_digits(num_left, num_left), any_fraction()};
      texts.push_back(store_.concat(parts));
    }
  }

  // Behind an equal whole part.
  TermId fraction_at_least(const Bound& bound) {
    const std::string& fraction = bound.value.fraction();
    if (fraction.empty() && bound.is_included) return any_fraction();
    if (!has_fraction_) return kNothing;
    std::vector<TermId> texts;
    for (std::size_t i = 0; i < fraction.size(); ++i) {
      const std::array<TermId, 3> parts = {store_.literal(fraction.substr(0, i)),
                                           digits(static_cast<char>(fraction[i] + 1), '9'), some_digits(0, kMaxDigits)};
      texts.push_back(store_.concat(parts));
    }
    texts.push_back(store_.concat(store_.literal(fraction), above_zero()));
    if (bound.is_included) texts.push_back(store_.concat(store_.literal(fraction), zeros()));
    return store_.concat(store_.literal("."), store_.any_of(std::move(texts)));
  }

  TermId fraction_at_most(const Bound& bound) {
    const std::string& fraction = bound.value.fraction();
    std::vector<TermId> behind_point;
    if (!fraction.empty() || bound.is_included) behind_point.push_back(store_.repeat(store_.literal("0"), 1, kMaxDigits));
    for (std::size_t i = 0; i < fraction.size(); ++i) {
      const TermId start = store_.literal(fraction.substr(0, i));
      const std::array<TermId, 3> parts = {start, digits('0', static_cast<char>(fraction[i] - 1)),
                                           some_digits(0, kMaxDigits)};
      behind_point.push_back(store_.concat(parts));
      if (i > 0) behind_point.push_back(start);
    }
    if (bound.is_included && !fraction.empty()) behind_point.push_back(store_.concat(store_.literal(fraction), zeros()));
    const bool may_be_whole = bound.is_included || !fraction.empty();
    const TermId point = has_fraction_
                             ? store_.concat(store_.literal("."), store_.without_empty_text(store_.any_of(std::move(behind_point))))
                             : kNothing;
    return may_be_whole ? store_.optional(point) : point;
  }

  TermStore& store_;
  bool has_fraction_;
};

// |x| within what `least` and `greatest` say of x >= 0.
TermId magnitudes(TermStore& store, bool has_fraction, const std::optional<Bound>& least,
                  const std::optional<Bound>& greatest) {
  MagnitudeTexts texts(store, has_fraction);
  std::vector<TermId> conditions = {texts.any()};
  if (least && (!least->value.is_negative() && !(least->value.is_zero() && least->is_included))) {
    conditions.push_back(texts.at_least(*least));
  }
  if (greatest) {
    if (greatest->value.is_negative()) return kNothing;
    conditions.push_back(texts.at_most(*greatest));
  }
  return store.all_of(std::move(conditions));
}

std::optional<Bound> mirrored(const std::optional<Bound>& bound) {
  if (!bound) return std::nullopt;
  return Bound{bound->value.negated(), bound->is_included};
}

// Numbers without bounds may have an exponent.
TermId with_exponent(TermStore& store, TermId number) {
  const TermId sign = store.optional(store.any_of({store.literal("+"), store.literal("-")}));
  const TermId digit = store.char_class(CodePointSet::of('0', '9'));
  const TermId mark = store.any_of({store.literal("e"), store.literal("E")});
  const TermId exponent = store.concat(mark, store.concat(sign, store.repeat(digit, 1, 2)));
  return store.concat(number, store.optional(exponent));
}

Result<TermId> multiples(TermStore& store, const Decimal& divisor) {
  const std::size_t num_fraction = divisor.fraction().size();
  if (num_fraction > kMaxDivisorDigits) {
    return make_error(ErrorKind::kUnmet, fmt::format("multipleOf {} has more than {} digits behind the point",
                                                     divisor.text(), kMaxDivisorDigits), "multipleOf");
  }
  const std::string scaled = divisor.whole() + divisor.fraction();
  std::uint64_t modulus = 0;
  const auto [end, error] = std::from_chars(scaled.data(), scaled.data() + scaled.size(), modulus);
  if (error != std::errc() || modulus > kMaxRemainders) {
    return make_error(ErrorKind::kUnmet,
                      fmt::format("multipleOf {} has more than {} remainders", divisor.text(), kMaxRemainders), "multipleOf");
  }
  return store.multiples(static_cast<std::uint32_t>(modulus), static_cast<std::uint32_t>(num_fraction));
}

}  // namespace

NumberSet intersected(const NumberSet& a, const NumberSet& b) {
  NumberSet result = a;
  if (b.least && (!a.least || is_tighter_least(*b.least, *a.least))) result.least = b.least;
  if (b.greatest && (!a.greatest || is_tighter_greatest(*b.greatest, *a.greatest))) result.greatest = b.greatest;
  if (!result.is_integer) result.is_integer = b.is_integer;
  if (a.is_integer && b.is_integer && *a.is_integer != *b.is_integer) {  // nothing
    result.least = Bound{Decimal::of(1), true};
    result.greatest = Bound{Decimal::of(0), true};
  }
  append_new(result.multiple_of, b.multiple_of);
  append_new(result.not_multiple_of, b.not_multiple_of);
  return result;
}

std::vector<NumberSet> complement(const NumberSet& set) {
  std::vector<NumberSet> result;
  if (set.least) result.push_back({.greatest = Bound{set.least->value, !set.least->is_included}});
  if (set.greatest) result.push_back({.least = Bound{set.greatest->value, !set.greatest->is_included}});
  if (set.is_integer) result.push_back({.is_integer = !*set.is_integer});
  for (const Decimal& divisor : set.multiple_of) result.push_back({.not_multiple_of = {divisor}});
  for (const Decimal& divisor : set.not_multiple_of) result.push_back({.multiple_of = {divisor}});
  return result;
}

bool is_empty(const NumberSet& set) {
  if (!set.least || !set.greatest) return false;
  if (set.least->value > set.greatest->value) return true;
  if (set.least->value < set.greatest->value) return false;
  if (!set.least->is_included || !set.greatest->is_included) return true;
  return set.is_integer && *set.is_integer != set.least->value.is_integer();
}

Result<TermId> number_texts(TermStore& store, const NumberSet& set) {
  const bool is_integer = set.is_integer.value_or(false);
  const bool has_fraction = !is_integer;
  const bool is_below_zero_allowed = !set.least || set.least->value.is_negative();
  std::vector<TermId> texts = {magnitudes(store, has_fraction, set.least, set.greatest)};
  if (is_below_zero_allowed) {
    std::optional<Bound> least = mirrored(set.greatest);
    if (is_integer && (!least || least->value.is_negative() || least->value.is_zero())) {
      least = Bound{Decimal::of(1), true};  // no -0
    }
    const TermId below = magnitudes(store, has_fraction, least, mirrored(set.least));
    texts.push_back(store.concat(store.literal("-"), below));
  }
  TermId result = store.any_of(std::move(texts));
  const bool has_divisors = !set.multiple_of.empty() || !set.not_multiple_of.empty();
  const bool is_free = !set.least && !set.greatest && !has_divisors && !set.is_integer;
  if (is_free) return with_exponent(store, result);
  std::vector<TermId> conditions = {result};
  if (set.is_integer == false) {
    KVASIR_TRY(const TermId whole, multiples(store, Decimal::of(1)));
    conditions.push_back(store.complement(whole));
  }
  for (const Decimal& divisor : set.multiple_of) {
    KVASIR_TRY(const TermId term, multiples(store, divisor));
    conditions.push_back(term);
  }
  for (const Decimal& divisor : set.not_multiple_of) {
    KVASIR_TRY(const TermId term, multiples(store, divisor));
    conditions.push_back(store.complement(term));
  }
  return store.all_of(std::move(conditions));
}

Result<TermId> distinct_number_texts(TermStore& store, const NumberSet& set) {
  KVASIR_TRY(const TermId texts, number_texts(store, set));
  const TermId digit = store.char_class(CodePointSet::of('0', '9'));
  const TermId first = store.char_class(CodePointSet::of('1', '9'));
  const TermId digits = store.repeat(digit, 0, kUnbounded);
  const TermId zero = store.literal("0");
  const TermId from_one = store.concat(first, digits);
  const TermId fraction = store.concat(store.literal("."), store.concat(digits, first));
  const TermId point_or_digit = store.any_of({digit, store.literal(".")});
  const TermId decimal = store.all_of({store.concat(store.any_of({zero, from_one}), fraction),
                                       store.repeat(point_or_digit, 3, kMaxExactDigits + 1)});
  const TermId minus = store.optional(store.literal("-"));
  const TermId distinct = store.any_of({zero, store.concat(minus, store.any_of({from_one, decimal}))});
  return store.all_of({texts, distinct});
}

}  // namespace kvasir::grammar
