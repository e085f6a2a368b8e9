#include "grammar/tags/call_forms.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "grammar/schema/lowering.h"

namespace kvasir::grammar {
namespace {

using text::regex::CodePointSet;

constexpr std::string_view kBareSigns = "_-.$@/";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Keys that is_bare_name() takes, in ASCII.
TermId bare_names(TermStore& store) {
  CodePointSet set = CodePointSet::of('a', 'z');
  set.add(CodePointSet::of('A', 'Z'));
  set.add(CodePointSet::of('0', '9'));
  for (const char sign : kBareSigns) {
    const auto code_point = static_cast<unsigned char>(sign);
    set.add(CodePointSet::of(code_point, code_point));
  }
  return store.repeat(store.char_class(set), 1, kUnbounded);
}

// Both, or kNothing when they share no text.
TermId shared_texts(SchemaLowering& lowering, TermId a, TermId b) {
  const TermId texts = lowering.store().all_of({a, b});
  return lowering.evaluator().derivatives().is_alive(texts) ? texts : kNothing;
}

Part bare_key(SchemaLowering& lowering, const MemberKeys& keys) {
  TermStore& store = lowering.store();
  if (!keys.is_named()) {
    const TermId texts = shared_texts(lowering, keys.others, bare_names(store));
    return GrammarBuilder::text(Terminal{texts, TextForm::kPlain, mark_of(keys)});
  }
  return GrammarBuilder::text(is_bare_name(keys.name) ? store.literal(keys.name) : kNothing);
}

// Texts that a reader of bare values takes for something else: they begin as JSON does, or are one of its words, or of
// Python's.
TermId value_like_texts(TermStore& store) {
  const TermId blank = store.any_of({store.literal(" "), store.literal("\t"), store.literal("\n"), store.literal("\r")});
  const TermId blanks = store.repeat(blank, 0, kUnbounded);
  CodePointSet signs = CodePointSet::of('0', '9');
  for (const char32_t sign : {U'-', U'{', U'['}) signs.add(CodePointSet::of(sign, sign));
  const TermId begun = store.concat(store.char_class(signs), store.any_text());
  const TermId words = store.literals({"true", "false", "null", "True", "False", "None"});
  return store.concat(blanks, store.any_of({begun, store.concat(words, blanks)}));
}

}  // namespace

TermId texts_without(TermStore& store, std::span<const std::string_view> marks) {
  std::vector<TermId> found;
  for (const std::string_view mark : marks) {
    if (!mark.empty()) found.push_back(store.literal(mark));
  }
  if (found.empty()) return store.any_text();
  const TermId any = store.any_text();
  return store.complement(store.concat(std::array{any, store.any_of(std::move(found)), any}));
}

bool is_bare_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return is_letter_or_digit(c) || kBareSigns.contains(c) || static_cast<unsigned char>(c) >= 0x80;
  });
}

// A text that is recorded is not empty: nothing would begin.
Part DictForm::quoted(TermId texts, const TextMark& mark) {
  TermStore& store = lowering().store();
  TermId plain = shared_texts(lowering(), texts, texts_without(store, std::array{quote_}));
  if (mark.is_record()) plain = store.without_empty_text(plain);
  const Part quote = marks_.part(quote_);
  return lowering().builder().sequence(
      std::array{quote, GrammarBuilder::text(Terminal{plain, TextForm::kPlain, mark}), quote});
}

Part DictForm::string(const StringCell& cell, const TextMark& mark) { return quoted(cell.texts, mark); }

Part DictForm::key(const MemberKeys& keys) {
  if (!keys.is_named() || is_bare_name(keys.name)) return bare_key(lowering(), keys);
  return quoted(lowering().store().literal(keys.name));
}

Part PythonForm::word(std::string_view name) {
  return lowering().text(name == "null" ? "None" : name == "true" ? "True" : "False");
}

Part PythonArguments::key(const MemberKeys& keys) { return bare_key(lowering(), keys); }

Part PythonArguments::member(const MemberKeys& keys, SchemaName value) { return member_with("=", keys, value); }

Part PythonArguments::object(const Part& members) {
  return lowering().in_scope("(", members, ")");
}

Part ConfinedJson::string(const StringCell& cell, const TextMark& mark) {
  StringCell confined = cell;
  confined.texts = shared_texts(lowering(), cell.texts, texts_);
  return JsonForm::string(confined, mark);
}

Part ConfinedJson::key(const MemberKeys& keys) {
  TermStore& store = lowering().store();
  const TermId wanted = keys.is_named() ? store.literal(keys.name) : keys.others;
  return GrammarBuilder::text(Terminal{shared_texts(lowering(), wanted, texts_), TextForm::kJsonCanonical,
                                       keys.is_named() ? TextMark() : mark_of(keys)});
}

TaggedArguments::TaggedArguments(SchemaLowering& lowering, const MarkWriter& marks, const ToolCallSyntax& syntax,
                                 std::span<const std::string> text_arguments)
    : JsonForm(lowering), marks_(marks), syntax_(syntax), text_arguments_(text_arguments) {
  TermStore& store = lowering.store();
  // Without its last character: a near miss would run on.
  std::string_view close = syntax.layout == ToolCallLayout::kNested ? syntax.tag_mark : syntax.value_close;
  close.remove_suffix(1);
  texts_ = texts_without(store, std::array{close, syntax.has_cdata ? std::string_view("<![CDATA[") : std::string_view()});
  typed_texts_ = store.without(texts_, value_like_texts(store));
}

// An element's name stands in two tags, which are alike only where it is known.
Part TaggedArguments::key(const MemberKeys& keys) {
  const bool is_element = syntax_.layout == ToolCallLayout::kNested;
  if (is_element && (!keys.is_named() || keys.name.starts_with('/'))) return GrammarBuilder::text(kNothing);
  return bare_key(lowering(), keys);
}

// Of all values but texts.
Part TaggedArguments::other_value(const Cells& cells, SchemaName value) {
  if (cells.strings.empty()) return GrammarBuilder::rule(lowering().rule_of(value));
  Part part = GrammarBuilder::text(kNothing);
  auto lowered = lowering().lower_without_strings(value);
  if (lowered) part = *lowered;
  if (!lowered && status_) status_ = std::unexpected(std::move(lowered).error());
  return part;
}

// Each argument begins with a gap of its own.
Part TaggedArguments::separator(bool) { return GrammarBuilder::text(kEmptyText); }

Part TaggedArguments::member(const MemberKeys& keys, SchemaName value) {
  const auto cells = lowering().evaluator().cells(value);
  if (!cells) {
    if (status_) status_ = std::unexpected(cells.error());
    return GrammarBuilder::text(kNothing);
  }
  const Cells found = **cells;
  TermStore& store = lowering().store();
  const bool has_attributes = !syntax_.string_attribute.empty();
  const bool is_text = keys.is_named() && std::ranges::find(text_arguments_, keys.name) != text_arguments_.end();
  std::vector<TermId> texts;
  for (const StringCell& cell : found.strings) {
    texts.push_back(shared_texts(lowering(), cell.texts, is_text || has_attributes ? texts_ : typed_texts_));
  }
  const Part name = key(keys);
  std::vector<Part> parts = {
      argument(name, syntax_.string_attribute, GrammarBuilder::text(store.any_of(std::move(texts))))};
  if (is_text && !has_attributes) return parts[0];
  const Part other = other_value(found, value);
  if (!has_attributes) parts.push_back(argument(name, {}, other));
  for (const std::string_view attribute : syntax_.json_attributes) {
    if (!attribute.empty()) parts.push_back(argument(name, attribute, other));
  }
  return lowering().builder().choice(parts);
}

Part TaggedArguments::argument(const Part& key, std::string_view attribute, const Part& value) {
  GrammarBuilder& builder = lowering().builder();
  const Part gap = lowering().gap();
  if (syntax_.layout == ToolCallLayout::kNested) {
    const Part mark = marks_.part(syntax_.tag_mark);
    const Part end = lowering().text(">");
    return builder.sequence(
        std::array{gap, mark, lowering().text("<"), key, end, value, mark, lowering().text("</"), key, end});
  }
  const Part line = lowering().text(syntax_.has_value_lines ? "\n" : "");
  const Part before_value = syntax_.value_open.empty() ? GrammarBuilder::text(kEmptyText) : gap;
  return builder.sequence(std::array{gap, marks_.part(syntax_.key_open), key, marks_.part(attribute),
                                     marks_.part(syntax_.key_close), before_value, marks_.part(syntax_.value_open), line,
                                     value, line, marks_.part(syntax_.value_close)});
}

Part TaggedArguments::object(const Part& members) { return members; }

}  // namespace kvasir::grammar
