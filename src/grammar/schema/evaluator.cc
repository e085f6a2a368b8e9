#include "grammar/schema/evaluator.h"

#include <fmt/format.h>

#include <utility>

#include "base/code_point.h"
#include "base/printable.h"
#include "grammar/schema/keyword_context.h"
#include "grammar/schema/keywords.h"

namespace kvasir::grammar {
namespace {

// What does not hold says nothing about elements and members that `unevaluated` keywords ask for.
void forget_evaluated(Cells& cells) {
  for (ArrayCell& cell : cells.arrays) cell.num_evaluated = 0;
  for (ObjectCell& cell : cells.objects) {
    for (SharedRule& shared : cell.rules) {
      MemberRule rule = shared;
      rule.is_assertion = false;
      shared = std::move(rule);
    }
  }
}

}  // namespace


Result<const Cells*> SchemaEvaluator::cells(SchemaName name) {
  if (const auto found = cells_.find(name); found != cells_.end()) return &found->second;
  Cells result;
  if (name != kNoValue) {
    result = algebra_.any_value();
    const std::vector<SchemaLiteral> literals = names_.literals(name);
    for (const SchemaLiteral& literal : literals) {
      KVASIR_TRY(const Cells* cells, literal_cells(literal));
      KVASIR_TRY(result, algebra_.both(result, *cells));
    }
  }
  num_cells_ += result.count();
  return &cells_.emplace(name, std::move(result)).first->second;
}

const Cells* SchemaEvaluator::cells_if_known(SchemaName name) {
  const bool was_refused = notes_.refused.has_value();
  const Result<const Cells*> found = cells(name);
  if (found) return *found;
  if (!was_refused) notes_.refused.reset();
  return nullptr;
}

void SchemaEvaluator::note_narrowed(const JsonValue& keyword, std::string_view reason) {
  if (keeps_notes_) notes_.narrowed.insert({keyword.pointer(), keyword.key, std::string(reason)});
}

std::unexpected<Error> SchemaEvaluator::refuse(SchemaNote note, std::string keyword, ErrorKind kind) {
  const std::string message = fmt::format("'{}': {}", printable(note.pointer), note.reason);
  if (!notes_.refused) {
    notes_.refused = std::move(note);
    refused_keyword_ = std::move(keyword);
  }
  return make_error(kind, message);
}

bool SchemaEvaluator::has_text(TermId term, std::string_view text) {
  for (std::size_t at = 0; at < text.size() && term != kNothing;) {
    const auto [code_point, size_bytes] = code_point_at(text, at);
    term = derivatives_.next(term, code_point);
    at += size_bytes;
  }
  return store_.is_nullable(term);
}

// The reference lives as long as this.
Result<const Cells*> SchemaEvaluator::literal_cells(const SchemaLiteral& literal) {
  if (const auto found = literal_cells_.find(literal); found != literal_cells_.end()) return &found->second;
  if (!in_progress_.insert(literal).second) {
    return refuse({literal.schema->pointer(), {}, "the schema refers to itself and takes nothing on the way"}, {},
                  ErrorKind::kUsage);
  }
  Result<Cells> cells;
  if (literal.is_value) {
    cells = value_cells(*literal.schema);
    if (cells && literal.is_complement) cells = algebra_.complement(*cells);
  } else {
    cells = schema_cells(*literal.schema, literal.is_complement);
  }
  in_progress_.erase(literal);
  if (!cells) return std::unexpected(std::move(cells).error());
  return &literal_cells_.emplace(literal, std::move(*cells)).first->second;
}

Result<Cells> SchemaEvaluator::schema_cells(const JsonValue& schema, bool is_complement) {
  if (schema.is_bool()) {
    const bool is_any = (schema.kind == JsonValue::Kind::kTrue) != is_complement;
    return is_any ? algebra_.any_value() : Cells();
  }
  if (!schema.is_object()) {
    return refuse({schema.pointer(), schema.key, "a schema is an object, true or false"}, schema.pointer(),
                  ErrorKind::kUsage);
  }
  KeywordContext context(*this, schema, is_complement);
  KVASIR_CHECKED(read_keywords(context));
  Cells cells = context.result();
  if (is_complement) forget_evaluated(cells);
  return cells;
}

Result<Cells> SchemaEvaluator::value_cells(const JsonValue& value) {
  Cells cells;
  const auto name_of_value = [&](const JsonValue& child) {
    return names_.name_of(SchemaLiteral{.schema = &child, .is_value = true});
  };
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      cells.has_null = true;
      break;
    case JsonValue::Kind::kTrue:
      cells.has_true = true;
      break;
    case JsonValue::Kind::kFalse:
      cells.has_false = true;
      break;
    case JsonValue::Kind::kNumber: {
      const auto number = Decimal::parse(value.text);
      if (!number) {
        return refuse({value.pointer(), value.key, fmt::format("the number {} is too long", printable(value.text, 40))},
                      value.pointer(), ErrorKind::kUnmet);
      }
      cells.numbers = {NumberSet{.least = Bound{*number}, .greatest = Bound{*number}}};
      break;
    }
    case JsonValue::Kind::kString:
      cells.strings = {StringCell{.texts = store_.literal(value.text), .perhaps = store_.literal(value.text), .is_free = false}};
      break;
    case JsonValue::Kind::kArray: {
      ArrayCell cell = {.prefix = {}, .rest = kNoValue,
                        .min_items = static_cast<std::uint32_t>(value.children.size())};
      for (const auto& child : value.children) cell.prefix.push_back(name_of_value(*child));
      cells.arrays = {std::move(cell)};
      break;
    }
    case JsonValue::Kind::kObject: {
      MemberRule rule = {.properties = {}, .patterns = {}, .others = kNoValue, .has_others = true, .is_assertion = false};
      ObjectCell cell;
      for (const auto& child : value.children) {
        rule.properties.emplace_back(child->key, name_of_value(*child));
        cell.required.push_back(child->key);
      }
      cell.rules.push_back(std::move(rule));
      cells.objects = {std::move(cell)};
      break;
    }
  }
  return cells;
}

}  // namespace kvasir::grammar
