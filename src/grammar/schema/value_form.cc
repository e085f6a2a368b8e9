#include "grammar/schema/value_form.h"

#include <array>
#include <string>

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

Part JsonForm::member(const MemberKeys& keys, SchemaName value, bool is_first) {
  return member_with(":", keys, value, is_first);
}

Part JsonForm::member_with(std::string_view colon, const MemberKeys& keys, SchemaName value, bool is_first) {
  GrammarBuilder& builder = lowering_.builder();
  const Part rule = keys.value != nullptr ? *keys.value : GrammarBuilder::rule(lowering_.rule_of(value));
  const Part& gap = lowering_.gap();
  const Part& behind = lowering_.gap_behind_mark();
  if (!keys.is_named() || keys.name.empty() || keys.name != last_name_) {
    last_key_ = builder.sequence(std::array{key(keys), gap, lowering_.text(colon), behind});
    last_name_ = keys.is_named() ? keys.name : std::string_view();
  }
  if (is_first) return builder.sequence(std::array{gap, last_key_, rule});
  return builder.sequence(std::array{gap, lowering_.text(","), behind, last_key_, rule});
}

Part JsonForm::object(const Part& members) {
  return lowering_.in_scope("{", members, "}");
}

}  // namespace kvasir::grammar
