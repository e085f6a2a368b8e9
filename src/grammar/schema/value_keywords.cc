#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "grammar/regex/pattern.h"
#include "grammar/schema/cell_union.h"
#include "grammar/schema/formats.h"
#include "grammar/schema/keywords.h"

namespace kvasir::grammar {
namespace {


Result<Cells> type_cells(KeywordContext& context, const JsonValue& type) {
  const Cells any = context.algebra().any_value();
  Cells cells;
  if (type.text == "null") {
    cells.has_null = true;
  } else if (type.text == "boolean") {
    cells.has_true = cells.has_false = true;
  } else if (type.text == "number") {
    cells.numbers = any.numbers;
  } else if (type.text == "integer") {
    cells.numbers = {NumberSet{.is_integer = true}};
    context.note_narrowed(type, "an integer has no fraction: 2.0 is not written");
  } else if (type.text == "string") {
    cells.strings = any.strings;
  } else if (type.text == "array") {
    cells.arrays = any.arrays;
  } else if (type.text == "object") {
    cells.objects = any.objects;
  } else if (type.text == "any") {
    cells = any;
  } else {
    return context.fail(type, fmt::format("'{}' is no type", printable(type.text, 40)));
  }
  return cells;
}

}  // namespace

namespace keyword {

Status read_type(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_array()) {
    KVASIR_TRY(const Cells cells, type_cells(context, keyword));
    return context.add(cells);
  }
  Cells cells;
  for (const auto& type : keyword.children) {
    KVASIR_TRY(const Cells one, type_cells(context, *type));
    cells = CellAlgebra::either(cells, one);
  }
  return context.add(cells);
}

Status read_enum(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_array()) return context.fail(keyword, "is no list");
  CellUnion values;
  std::vector<std::string_view> texts;
  std::size_t num_others = 0;
  for (const auto& value : keyword.children) {
    if (value->is_string()) {
      texts.push_back(value->text);
      continue;
    }
    if (++num_others > CellAlgebra::kMaxCells) {
      return context.fail(keyword, fmt::format("has more than {} values that are no strings", CellAlgebra::kMaxCells),
                          ErrorKind::kUnmet);
    }
    KVASIR_TRY(const Cells one, context.evaluator().value_cells(*value));
    values.add(one);
  }
  if (!texts.empty()) {
    const TermId any_of_them = context.store().literals(std::move(texts));
    values.add(StringCell{.texts = any_of_them, .perhaps = any_of_them, .is_free = false});
  }
  return context.add(values.cells());
}

Status read_const(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_TRY(const Cells cells, context.evaluator().value_cells(keyword));
  return context.add(cells);
}

// Draft 4 has exclusiveMinimum: true beside minimum.
Status read_bounds(KeywordContext& context, const JsonValue&) {
  NumberSet set;
  const auto read_end = [&](std::string_view plain, std::string_view exclusive, bool is_least) -> Status {
    const JsonValue* limit = context.find(plain);
    const JsonValue* open = context.find(exclusive);
    const bool is_open = open != nullptr && open->kind == JsonValue::Kind::kTrue;
    std::optional<Bound>& end = is_least ? set.least : set.greatest;
    if (limit != nullptr) {
      KVASIR_TRY(const Decimal value, context.number_of(*limit));
      end = Bound{value, !is_open};
    }
    if (open == nullptr || open->is_bool()) return {};
    KVASIR_TRY(const Decimal value, context.number_of(*open));
    NumberSet other;
    (is_least ? other.least : other.greatest) = Bound{value, false};
    set = intersected(set, other);
    return {};
  };
  KVASIR_CHECKED(read_end("minimum", "exclusiveMinimum", true));
  KVASIR_CHECKED(read_end("maximum", "exclusiveMaximum", false));
  return context.add_numbers(set);
}

Status read_multiple_of(KeywordContext& context, const JsonValue& keyword) {
  KVASIR_TRY(const Decimal divisor, context.number_of(keyword));
  if (divisor.is_negative() || divisor.is_zero()) return context.fail(keyword, "is not above 0");
  return context.add_numbers({.multiple_of = {divisor}});
}

Status read_length(KeywordContext& context, const JsonValue&) {
  std::uint32_t min = 0;
  std::uint32_t max = kUnbounded;
  if (const JsonValue* value = context.find("minLength")) {
    KVASIR_TRY(min, context.count_of(*value));
  }
  if (const JsonValue* value = context.find("maxLength")) {
    KVASIR_TRY(max, context.count_of(*value));
  }
  TermStore& store = context.store();
  const TermId any = store.char_class(text::regex::CodePointSet::of(0, kLastCodePoint));
  const TermId texts = min > max ? kNothing : store.repeat(any, min, max);
  return context.add_strings({.texts = texts, .perhaps = texts});
}

Status read_pattern(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_string()) return context.fail(keyword, "is no text");
  const auto read = [&](ClassReading reading) {
    return pattern_language(context.store(), keyword.text, PatternFit::kFound, reading);
  };
  const auto texts = read(ClassReading::kNarrow);
  if (!texts) return context.fail(keyword, texts.error().message, texts.error().kind);
  KVASIR_TRY(const TermId perhaps, read(ClassReading::kWide));
  if (*texts != perhaps) context.note_narrowed(keyword, "texts that some validators find no match in are not written");
  return context.add_strings({.texts = *texts, .perhaps = perhaps, .is_free = false});
}

Status read_format(KeywordContext& context, const JsonValue& keyword) {
  if (!keyword.is_string()) return context.fail(keyword, "is no text");
  KVASIR_TRY(const std::optional<FormatTexts> texts, format_texts(context.store(), keyword.text));
  if (!texts) {
    context.evaluator().note_ignored(keyword);
    return {};
  }
  context.note_narrowed(keyword, "texts that only some validators take are not written");
  return context.add_strings({.texts = texts->surely, .perhaps = texts->perhaps, .is_free = false});
}

}  // namespace keyword
}  // namespace kvasir::grammar
