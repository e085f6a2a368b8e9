#include "grammar/schema/lowering.h"

#include <array>
#include <string>
#include <utility>

#include "grammar/schema/cell_union.h"
#include "grammar/schema/needed_objects.h"

namespace kvasir::grammar {
namespace {

Part flexible_gap(TermStore& store) {
  const TermId blank = store.any_of({store.literal(" "), store.literal("\t")});
  const TermId line = store.concat(store.literal("\n"), store.repeat(blank, 0, 64));
  return GrammarBuilder::text(store.any_of({store.repeat(blank, 0, 2), line}));
}

}  // namespace

SchemaLowering::SchemaLowering(SchemaEvaluator& evaluator, GrammarBuilder& builder, const SchemaOptions& options)
    : evaluator_(evaluator), builder_(builder), options_(options), form_(std::make_unique<JsonForm>(*this)) {
  const bool is_flexible = options.blanks == JsonBlanks::kFlexible;
  gap_ = is_flexible ? flexible_gap(store()) : GrammarBuilder::text(kEmptyText);
  gap_behind_mark_ = options.blanks == JsonBlanks::kSingle ? text(" ") : gap_;
}

Part SchemaLowering::in_scope(std::string_view open, const Part& inner, std::string_view close) {
  const Part end = builder_.sequence(std::array{gap_, text(close)});
  return builder_.sequence(std::array{GrammarBuilder::marked(text(open), kOpensScope), inner,
                                      GrammarBuilder::marked(end, kClosesScope)});
}

RuleId SchemaLowering::rule_of(SchemaName name) {
  if (const auto found = rules_.find(name); found != rules_.end()) return found->second;
  const RuleId rule = builder_.declare({});
  rules_.emplace(name, rule);
  pending_.push_back(name);
  return rule;
}

Result<RuleId> SchemaLowering::lower(SchemaName name) {
  const RuleId start = rule_of(name);
  KVASIR_CHECKED(define_pending());
  return start;
}

Result<Part> SchemaLowering::lower_objects(SchemaName name, ValueForm& form) {
  KVASIR_TRY(const Cells* cells, evaluator_.cells(name));
  const std::vector<ObjectCell> objects = needed_objects(evaluator_, cells->objects, options_.closes_objects);
  std::vector<Part> parts;
  for (const ObjectCell& cell : objects) {
    const Result<Part> part = lower_object(*this, cell, form);
    if (!part) return refuse(name, part.error());
    parts.push_back(*part);
  }
  KVASIR_CHECKED(define_pending());
  return builder_.choice(parts);
}

// Rules that it needs are defined with the whole.
Result<Part> SchemaLowering::lower_without_strings(SchemaName name) {
  KVASIR_TRY(const Cells* cells, evaluator_.cells(name));
  Cells others = *cells;
  others.strings.clear();
  return lower_cells(others);
}

Status SchemaLowering::define_pending() {
  while (!pending_.empty()) {
    const SchemaName next = pending_.back();
    pending_.pop_back();
    KVASIR_TRY(const Cells* cells, evaluator_.cells(next));
    const Cells copied = *cells;
    is_at_root_ = document_ == next;
    if (const auto same = rule_of_same(next, copied)) {
      builder_.define(rules_.at(next), GrammarBuilder::rule(*same));
      continue;
    }
    const Result<Part> part = lower_cells(copied);
    if (!part) return refuse(next, part.error());
    builder_.define(rules_.at(next), *part);
  }
  return {};
}

// A rule of the same values, which have been asked for by another name. A document is like no other value.
std::optional<RuleId> SchemaLowering::rule_of_same(SchemaName name, const Cells& cells) {
  if (document_ == name) return std::nullopt;
  const std::uint64_t hash = hash_of(cells);
  const auto is_same = [&](SchemaName other) {
    const Cells* known = evaluator_.cells_if_known(other);
    return known != nullptr && *known == cells;
  };
  const SchemaName same = by_cells_.find(hash, is_same);
  if (same != IdTable::kNone) return rules_.at(same);
  by_cells_.insert(hash, name);
  return std::nullopt;
}

Result<RuleId> SchemaLowering::lower_document(SchemaName name) {
  document_ = name;
  return lower(name);
}

// The error with the place of the keyword that its parameter names, or of the schema, unless it has one.
std::unexpected<Error> SchemaLowering::refuse(SchemaName name, const Error& error) {
  const auto& literals = evaluator_.names().literals(name);
  if (evaluator_.notes().refused || literals.empty()) return std::unexpected(error);
  for (const SchemaLiteral& literal : literals) {
    const JsonValue* keyword = literal.schema->is_object() ? literal.schema->find(error.param) : nullptr;
    if (keyword != nullptr) {
      return evaluator_.refuse({keyword->pointer(), keyword->key, error.message}, keyword->pointer(), error.kind);
    }
  }
  const JsonValue& schema = *literals.front().schema;
  return evaluator_.refuse({schema.pointer(), schema.key, error.message}, {}, error.kind);
}

Result<Part> SchemaLowering::lower_cells(const Cells& cells) {
  std::vector<Part> parts;
  if (cells.has_null) parts.push_back(form_->word("null"));
  if (cells.has_true) parts.push_back(form_->word("true"));
  if (cells.has_false) parts.push_back(form_->word("false"));
  for (const NumberSet& set : cells.numbers) {
    KVASIR_TRY(const TermId texts, number_texts(store(), set));
    if (evaluator_.derivatives().is_alive(texts)) parts.push_back(GrammarBuilder::text(texts));
  }
  for (const StringCell& cell : cells.strings) {
    if (evaluator_.derivatives().is_alive(cell.texts)) parts.push_back(form_->string(cell));
  }
  for (const ArrayCell& cell : cells.arrays) {
    KVASIR_TRY(const Part part, lower_array(*this, cell));
    parts.push_back(part);
  }
  for (const ObjectCell& cell : needed_objects(evaluator_, cells.objects, options_.closes_objects)) {
    KVASIR_TRY(const Part part, lower_object(*this, cell, *form_));
    parts.push_back(part);
  }
  return builder_.choice(parts);
}

}  // namespace kvasir::grammar
