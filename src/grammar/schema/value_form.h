// How the values of a schema are written.
#pragma once

#include <string>
#include <string_view>

#include "grammar/ir/grammar_builder.h"
#include "grammar/schema/cells.h"

namespace kvasir::grammar {

class SchemaLowering;

// A key, or any of several.
struct MemberKeys {
  std::string_view name = {};
  TermId others = kNothing;  // kNothing: the key is `name`
  bool may_run_out = true;   // of others: TextMark::may_run_out
  const Part* value = nullptr;  // how the member's value is written; null: as everywhere

  bool is_named() const { return others == kNothing; }
};

// The mark of keys that are not named.
inline TextMark mark_of(const MemberKeys& keys) {
  return {.kind = TextMark::Kind::kRecord, .may_run_out = keys.may_run_out};
}

// Parts of values, as a lowering puts them together. Lists and numbers are those of JSON in every form. Keys that are not
// named are recorded, so that none comes twice; the brackets of objects and lists are scopes (TextMark).
class ValueForm {
 public:
  virtual ~ValueForm() = default;

  // With a mark that records: one text for each string.
  virtual Part string(const StringCell& cell, const TextMark& mark = {}) = 0;
  // "null", "true" or "false".
  virtual Part word(std::string_view name) = 0;
  // The text before a member, which separates it from the one before.
  virtual Part separator(bool is_first) = 0;
  // A member of an object.
  virtual Part member(const MemberKeys& keys, SchemaName value) = 0;
  // An object around its members.
  virtual Part object(const Part& members) = 0;
};

class JsonForm : public ValueForm {
 public:
  // The lowering outlives this.
  explicit JsonForm(SchemaLowering& lowering) : lowering_(lowering) {}

  Part string(const StringCell& cell, const TextMark& mark) override;
  Part word(std::string_view name) override;
  Part separator(bool is_first) override;
  Part member(const MemberKeys& keys, SchemaName value) override;
  Part object(const Part& members) override;

 protected:
  virtual Part key(const MemberKeys& keys);
  SchemaLowering& lowering() { return lowering_; }
  // The member with this sign between its key and its value.
  Part member_with(std::string_view colon, const MemberKeys& keys, SchemaName value);

 private:
  SchemaLowering& lowering_;
};

}  // namespace kvasir::grammar
