#include "grammar/schema/keyword_context.h"

#include <string>
#include <utility>


namespace kvasir::grammar {

KeywordContext::KeywordContext(SchemaEvaluator& evaluator, const JsonValue& schema, bool is_complement)
    : evaluator_(evaluator), schema_(schema), is_complement_(is_complement) {
  if (!is_complement) result_ = algebra().any_value();
}

const JsonValue* KeywordContext::find(std::string_view keyword) const {
  const JsonValue* value = schema_.find(keyword);
  return value != nullptr && evaluator_.is_skipped(*value) ? nullptr : value;
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
    result_ = CellAlgebra::either(result_, cells);
    return {};
  }
  KVASIR_TRY(result_, algebra().both(result_, cells));
  return {};
}

// Adds a cell of one type; values of the others stay as they are.
template <typename Cell>
Status KeywordContext::add_of_type(std::vector<Cell> Cells::*type, const Cell& cell) {
  if (is_complement_) {
    Cells cells = algebra().any_value();
    cells.*type = {cell};
    return add(cells);
  }
  Cells so_far, wanted;
  so_far.*type = std::move(result_.*type);
  (wanted.*type).push_back(cell);
  KVASIR_TRY(Cells both, algebra().both(so_far, wanted));
  result_.*type = std::move(both.*type);
  return {};
}

Status KeywordContext::add_numbers(const NumberSet& set) { return add_of_type(&Cells::numbers, set); }
Status KeywordContext::add_strings(const StringCell& cell) { return add_of_type(&Cells::strings, cell); }
Status KeywordContext::add_arrays(const ArrayCell& cell) { return add_of_type(&Cells::arrays, cell); }
Status KeywordContext::add_objects(const ObjectCell& cell) { return add_of_type(&Cells::objects, cell); }

void KeywordContext::note_narrowed(const JsonValue& keyword, std::string_view reason) {
  evaluator_.note_narrowed(keyword, reason);
}

void KeywordContext::narrow(const JsonValue& keyword, std::string_view reason) {
  result_.is_narrowed = true;
  note_narrowed(keyword, reason);
}

std::unexpected<Error> KeywordContext::fail(const JsonValue& value, std::string_view what, ErrorKind kind) {
  const JsonValue* keyword = &value;
  while (keyword->parent != &schema_ && keyword->parent != nullptr) keyword = keyword->parent;
  return evaluator_.refuse({value.pointer(), keyword->key, std::string(what)}, keyword->pointer(), kind);
}

Result<Decimal> KeywordContext::number_of(const JsonValue& keyword) {
  const auto number = keyword.is_number() ? Decimal::parse(keyword.text) : std::nullopt;
  if (!number) return fail(keyword, "is no number that can be read");
  return *number;
}

Result<std::uint32_t> KeywordContext::count_of(const JsonValue& keyword) {
  KVASIR_TRY(const Decimal number, number_of(keyword));
  if (number.is_negative() || !number.is_integer()) return fail(keyword, "is no count");
  if (number.whole().size() > 9) return kNoLimit - 1;
  return static_cast<std::uint32_t>(std::stoul(number.whole()));
}

}  // namespace kvasir::grammar
