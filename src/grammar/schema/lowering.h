// Sets of JSON values as a grammar of their texts.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/id_table.h"
#include "grammar/schema/evaluator.h"
#include "grammar/schema/schema_options.h"
#include "grammar/schema/value_form.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Each name becomes a rule when it is first asked for, so that recursion closes.
//
// Thread safety: none.
class SchemaLowering {
 public:
  // All outlive this.
  SchemaLowering(SchemaEvaluator& evaluator, GrammarBuilder& builder, const SchemaOptions& options);

  // Defines the rule of the name and of all that it needs. Errors: as SchemaEvaluator's, and kUnmet for what the
  // grammar cannot count.
  Result<RuleId> lower(SchemaName name);
  // The objects of the set in a form of their own; what is inside of them is in the lowering's. Errors: as lower()'s.
  Result<Part> lower_objects(SchemaName name, ValueForm& form);
  // The values of the set but strings. Errors: as lower()'s.
  Result<Part> lower_without_strings(SchemaName name);

  // Values are written as JSON until another form is set. Requires: nothing has been lowered.
  void set_form(std::unique_ptr<ValueForm> form) { form_ = std::move(form); }

  RuleId rule_of(SchemaName name);
  // Blanks between two tokens; parts that may be empty.
  const Part& gap() const { return gap_; }
  const Part& gap_behind_mark() const { return gap_behind_mark_; }  // behind a comma or a colon
  // Brackets around members or elements, and a gap before the last.
  Part in_scope(std::string_view open, const Part& inner, std::string_view close);
  // The values of the set, each recorded by one text of its own. Objects are told apart by a member that all of them
  // have. Lists, and objects that share none, are left out. kUnmet: then nothing is left. num_values: kManyTexts
  // where there are more.
  struct RecordedValues {
    Part part = {};
    std::uint32_t num_values = 0;
  };
  Result<RecordedValues> recorded_values(SchemaName name, const TextMark& mark);
  Part text(std::string_view text) { return GrammarBuilder::text(store().word(text)); }
  TermStore& store() { return evaluator_.store(); }
  GrammarBuilder& builder() { return builder_; }
  SchemaEvaluator& evaluator() { return evaluator_; }
  const SchemaOptions& options() const { return options_; }
  // lower() for a value that is a document of its own: an object may begin with "$schema".
  Result<RuleId> lower_document(SchemaName name);
  // What is lowered now is the whole document, not a part of one.
  bool is_at_root() const { return is_at_root_; }

 private:
  Status define_pending();
  std::optional<RuleId> rule_of_same(SchemaName name, const Cells& cells);
  Result<Part> lower_cells(const Cells& cells);
  Result<RecordedValues> recorded_objects(const std::vector<ObjectCell>& objects, bool are_alone);
  std::unexpected<Error> refuse(SchemaName name, const Error& error);

  SchemaEvaluator& evaluator_;
  GrammarBuilder& builder_;
  SchemaOptions options_;
  Part gap_;
  Part gap_behind_mark_;
  std::unique_ptr<ValueForm> form_;
  std::unordered_map<SchemaName, RuleId> rules_;
  IdTable by_cells_;  // names with a definition of their own
  std::vector<SchemaName> pending_;
  std::optional<SchemaName> document_;
  bool is_at_root_ = false;
};

// An array, or an object, with its brackets. Empty: no such value.
Result<Part> lower_array(SchemaLowering& lowering, const ArrayCell& cell);
// `recorded`: a member whose value is written as `recorded_value`; empty: none.
Result<Part> lower_object(SchemaLowering& lowering, const ObjectCell& cell, ValueForm& form,
                          const std::string& recorded = {}, const Part* recorded_value = nullptr);

}  // namespace kvasir::grammar
