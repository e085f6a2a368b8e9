#include "grammar/schema/finite_values.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/code_point.h"
#include "grammar/schema/numbers.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxCharacters = 200;

// The texts of a language, each with its first characters; false when there are too many or too long ones.
bool collect_texts(SchemaEvaluator& evaluator, TermId term, const std::string& begin, std::size_t most,
                   std::vector<std::string>& texts) {
  if (texts.size() > most || begin.size() > kMaxCharacters) return false;
  if (evaluator.store().is_nullable(term)) texts.push_back(begin);
  const TermRanges ranges = evaluator.derivatives().of(term);
  for (const TermRange& range : ranges) {
    if (range.last - range.first >= most) return false;
    for (char32_t c = range.first; c <= range.last; ++c) {
      std::string longer = begin;
      append_utf8(longer, c);
      if (!collect_texts(evaluator, range.target, longer, most, texts)) return false;
    }
  }
  return texts.size() <= most;
}

// The one number of a set, as its texts.
std::optional<Terminal> only_number(SchemaEvaluator& evaluator, const NumberSet& set) {
  if (!set.least || !set.greatest || set.least->value != set.greatest->value) return std::nullopt;
  const Result<TermId> texts = number_texts(evaluator.store(), set);
  if (!texts) return std::nullopt;
  return Terminal{*texts, TextForm::kPlain};
}

}  // namespace

std::optional<std::vector<Terminal>> finite_values(SchemaEvaluator& evaluator, SchemaName name, std::size_t most) {
  const Result<const Cells*> found = evaluator.cells(name);
  if (!found || !(*found)->arrays.empty() || !(*found)->objects.empty()) return std::nullopt;
  const Cells cells = **found;
  std::vector<Terminal> values;
  const auto add_literal = [&](std::string_view text) {
    values.push_back({evaluator.store().literal(text), TextForm::kPlain});
  };
  if (cells.has_null) add_literal("null");
  if (cells.has_true) add_literal("true");
  if (cells.has_false) add_literal("false");
  std::vector<Decimal> numbers;
  for (const NumberSet& set : cells.numbers) {
    const std::optional<Terminal> number = only_number(evaluator, set);
    if (!number || std::ranges::find(numbers, set.least->value) != numbers.end()) return std::nullopt;
    numbers.push_back(set.least->value);
    if (evaluator.derivatives().is_alive(number->term)) values.push_back(*number);
  }
  std::vector<TermId> languages;
  for (const StringCell& cell : cells.strings) languages.push_back(cell.texts);
  std::vector<std::string> texts;
  if (!collect_texts(evaluator, evaluator.store().any_of(std::move(languages)), {}, most, texts)) return std::nullopt;
  for (const std::string& text : texts) {
    values.push_back({evaluator.store().literal(text), TextForm::kJsonCanonical});
  }
  if (values.size() > most) return std::nullopt;
  return values;
}

}  // namespace kvasir::grammar
