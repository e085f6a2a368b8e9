// How arguments of calls are written where they are not JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "grammar/schema/value_form.h"
#include "grammar/tags/mark_writer.h"
#include "grammar/tags/tool_call_syntax.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Texts without any of these.
TermId texts_without(TermStore& store, std::span<const std::string_view> marks);

// Whether a key or a name may stand without quotes.
bool is_bare_name(std::string_view name);

// key:value, strings between marks of their own (kDict). All forms borrow what they are made from.
class DictForm final : public JsonForm {
 public:
  DictForm(SchemaLowering& lowering, const MarkWriter& marks, std::string_view quote)
      : JsonForm(lowering), marks_(marks), quote_(quote) {}

  Part string(const StringCell& cell, const TextMark& mark) override;

 private:
  Part key(const MemberKeys& keys) override;
  Part quoted(TermId texts, const TextMark& mark = {});

  const MarkWriter& marks_;
  std::string_view quote_;
};

// Values as Python writes them (kPythonic). Strings and keys are those of JSON, which Python reads alike.
class PythonForm final : public JsonForm {
 public:
  using JsonForm::JsonForm;
  Part word(std::string_view name) override;
};

// A call's arguments, key=value, between parentheses.
class PythonArguments final : public JsonForm {
 public:
  using JsonForm::JsonForm;
  Part member(const MemberKeys& keys, SchemaName value) override;
  Part object(const Part& members) override;

 private:
  Part key(const MemberKeys& keys) override;
};

// JSON whose strings and keys are of some texts alone.
class ConfinedJson final : public JsonForm {
 public:
  ConfinedJson(SchemaLowering& lowering, TermId texts) : JsonForm(lowering), texts_(texts) {}
  Part string(const StringCell& cell, const TextMark& mark) override;

 private:
  Part key(const MemberKeys& keys) override;

  TermId texts_;
};

// Arguments between marks, one behind the other (kTagged, kNested): texts bare, other values as JSON. A text that
// looks like another value is only written where the reader takes every value for a text.
class TaggedArguments final : public JsonForm {
 public:
  // text_arguments: keys whose values are read as texts.
  TaggedArguments(SchemaLowering& lowering, const MarkWriter& marks, const ToolCallSyntax& syntax,
                  std::span<const std::string> text_arguments);

  Part separator(bool is_first) override;
  Part member(const MemberKeys& keys, SchemaName value) override;
  Part object(const Part& members) override;

  // Texts that a value may hold: the mark behind it is in none.
  TermId texts() const { return texts_; }
  // A schema that could not be looked into.
  const Status& status() const { return status_; }

 private:
  Part key(const MemberKeys& keys) override;
  Part argument(const Part& key, std::string_view attribute, const Part& value);
  Part other_value(const Cells& cells, SchemaName value);

  const MarkWriter& marks_;
  const ToolCallSyntax& syntax_;
  std::span<const std::string> text_arguments_;
  TermId texts_ = kNothing;
  TermId typed_texts_ = kNothing;  // .. that are not read as another value
  Status status_;
};

}  // namespace kvasir::grammar
