#include "grammar/schema/value_form.h"

#include <array>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "grammar/schema/lowering.h"

namespace kvasir::grammar {

Part JsonForm::string(const StringCell& cell, const TextMark& mark) {
  const bool is_free = cell.is_free && !mark.is_record();
  return GrammarBuilder::text(Terminal{cell.texts, is_free ? TextForm::kJsonFree : TextForm::kJsonCanonical, mark});
}

Part JsonForm::word(std::string_view name) { return lowering_.text(name); }

Part JsonForm::key(const MemberKeys& keys) {
  if (!keys.is_named()) return GrammarBuilder::text(Terminal{keys.others, TextForm::kJsonCanonical, mark_of(keys)});
  std::string quoted;
  JsonWriter(quoted).value(keys.name);
  return lowering_.text(quoted);
}

Part JsonForm::separator(bool is_first) {
  if (is_first) return lowering_.gap();
  return lowering_.builder().sequence(std::array{lowering_.gap(), lowering_.text(","), lowering_.gap_behind_mark()});
}

Part JsonForm::member(const MemberKeys& keys, SchemaName value) { return member_with(":", keys, value); }

Part JsonForm::member_with(std::string_view colon, const MemberKeys& keys, SchemaName value) {
  Part rule = keys.value != nullptr ? *keys.value : GrammarBuilder::rule(lowering_.rule_of(value));
  return lowering_.builder().sequence(std::array{key(keys), lowering_.gap(), lowering_.text(colon),
                                                 lowering_.gap_behind_mark(), std::move(rule)});
}

Part JsonForm::object(const Part& members) {
  return lowering_.in_scope("{", members, "}");
}

}  // namespace kvasir::grammar
