#include "grammar/schema/lowering.h"

#include <array>
#include <utility>

namespace kvasir::grammar {
namespace {

Part flexible_gap(TermStore& store) {
  const TermId blank = store.any_of({store.literal(" "), store.literal("\t")});
  const TermId line = store.concat(store.literal("\n"), store.repeat(blank, 0, 64));
  return GrammarBuilder::text(store.any_of({store.repeat(blank, 0, 2), line}));
}

}  // namespace

SchemaLowering::SchemaLowering(SchemaEvaluator& evaluator, GrammarBuilder& builder, const SchemaOptions& options)
    : evaluator_(evaluator), builder_(builder) {
  gap_ = options.blanks == JsonBlanks::kFlexible ? flexible_gap(store()) : GrammarBuilder::text(kEmptyText);
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
  while (!pending_.empty()) {
    const SchemaName next = pending_.back();
    pending_.pop_back();
    KVASIR_TRY(const Cells* cells, evaluator_.cells(next));
    const Cells copied = *cells;
    KVASIR_TRY(const Part part, lower_cells(copied));
    builder_.define(rules_.at(next), part);
  }
  return start;
}

Part SchemaLowering::any_string(const StringCell& cell) {
  return GrammarBuilder::text(
      Terminal{cell.texts, cell.is_free ? TextForm::kJsonFree : TextForm::kJsonCanonical});
}

Result<Part> SchemaLowering::lower_cells(const Cells& cells) {
  std::vector<Part> parts;
  if (cells.has_null) parts.push_back(text("null"));
  if (cells.has_true) parts.push_back(text("true"));
  if (cells.has_false) parts.push_back(text("false"));
  for (const NumberSet& set : cells.numbers) {
    KVASIR_TRY(const TermId texts, number_texts(store(), set));
    if (evaluator_.derivatives().is_alive(texts)) parts.push_back(GrammarBuilder::text(texts));
  }
  for (const StringCell& cell : cells.strings) parts.push_back(any_string(cell));
  for (const ArrayCell& cell : cells.arrays) {
    KVASIR_TRY(const Part part, lower_array(*this, cell));
    parts.push_back(part);
  }
  for (const ObjectCell& cell : cells.objects) {
    KVASIR_TRY(const Part part, lower_object(*this, cell));
    parts.push_back(part);
  }
  return builder_.choice(parts);
}

}  // namespace kvasir::grammar
