#include "grammar/schema/keyword_context.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/printable.h"

namespace kvasir::grammar {

KeywordContext::KeywordContext(SchemaEvaluator& evaluator, const JsonValue& schema, bool is_complement)
    : evaluator_(evaluator), schema_(schema), is_complement_(is_complement) {
  if (!is_complement) result_ = algebra().any_value();
}

Result<const Cells*> KeywordContext::cells_of(const JsonValue& schema, bool is_complement) {
  return evaluator_.cells(names().name_of(SchemaLiteral{.schema = &schema, .is_complement = is_complement}));
}

Status KeywordContext::add(const Cells& holds) {
  if (!is_complement_) return add_as_is(holds);
  KVASIR_TRY(const Cells fails, algebra().complement(holds));
  return add_as_is(fails);
}

Status KeywordContext::add_as_is(const Cells& cells) {
  if (is_complement_) {
    result_ = CellAlgebra::either(std::move(result_), cells);
    return {};
  }
  KVASIR_TRY(result_, algebra().both(result_, cells));
  return {};
}

Status KeywordContext::add_numbers(const NumberSet& set) {
  Cells cells = algebra().any_value();
  cells.numbers = {set};
  return add(cells);
}

Status KeywordContext::add_strings(const StringCell& cell) {
  Cells cells = algebra().any_value();
  cells.strings = {cell};
  return add(cells);
}

Status KeywordContext::add_arrays(const ArrayCell& cell) {
  Cells cells = algebra().any_value();
  cells.arrays = {cell};
  return add(cells);
}

Status KeywordContext::add_objects(const ObjectCell& cell) {
  Cells cells = algebra().any_value();
  cells.objects = {cell};
  return add(cells);
}

std::unexpected<Error> KeywordContext::fail(const JsonValue& keyword, std::string_view what, ErrorKind kind) const {
  return make_error(kind, fmt::format("'{}': {}", printable(keyword.pointer()), what));
}

Result<Decimal> KeywordContext::number_of(const JsonValue& keyword) const {
  const auto number = keyword.is_number() ? Decimal::parse(keyword.text) : std::nullopt;
  if (!number) return fail(keyword, "is no number that can be read");
  return *number;
}

Result<std::uint32_t> KeywordContext::count_of(const JsonValue& keyword) const {
  KVASIR_TRY(const Decimal number, number_of(keyword));
  if (number.is_negative() || !number.is_integer()) return fail(keyword, "is no count");
  if (number.whole().size() > 9) return kNoLimit - 1;
  return static_cast<std::uint32_t>(std::stoul(number.whole()));
}

}  // namespace kvasir::grammar
