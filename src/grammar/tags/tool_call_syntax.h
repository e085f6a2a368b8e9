// How a family of models writes the calls of tools, as data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvasir::grammar {

enum class ToolCallLayout : std::uint8_t {
  kJson,       // {"name": N, "arguments": A}
  kNamedJson,  // N, perhaps a mark, A
  kTagged,     // N, then each argument between marks: its key, its value
  kNested,     // N, then each argument as an element, in which there may be others
  kDict,       // call:N{key:value, ..}, strings between marks of their own
  kPythonic,   // N(key=value, ..)
  kKeyedJson,  // {N: A}
};

// One row a family. An empty text is a part that the family does not write.
struct ToolCallSyntax {
  std::string_view family;
  ToolCallLayout layout = ToolCallLayout::kJson;
  std::string_view section_open = {};         // before all calls of an answer
  std::string_view section_close = {};        // behind them
  std::array<std::string_view, 4> open = {};  // before a call, or a list of calls: one of these
  std::string_view close = {};                // behind it
  bool may_be_bare = false;                   // the answer may begin with a call that no mark comes before
  bool may_be_list = false;                   // [call, call]
  bool writes_list = false;                   // also a single call
  // What a guided answer writes, where readers take more.
  bool writes_bare = false;       // no mark need come before the first call
  bool has_many_calls = false;    // a block may hold several calls, one behind the other
  bool is_single = false;         // there is one call in an answer
  std::size_t num_opens = 1;      // of `open`
  // Before a text that ends the answer, and before one that calls follow; behind it; before what follows it or a thought.
  std::array<std::string_view, 2> text_open = {};
  std::string_view text_close = {};
  std::string_view next_open = {};

  // kJson: members of the object. Readers take "arguments" and "parameters" for one another.
  std::string_view name_key = "name";
  std::string_view arguments_key = "arguments";
  std::string_view id_key = {};  // of a member with the call's id, which may be there
  std::uint32_t min_id_chars = 1;  // letters and digits
  std::uint32_t max_id_chars = 9;
  bool is_id_first = false;

  // kNamedJson
  std::string_view before_name = {};
  std::string_view name_mark = {};       // before the name, behind an id
  std::string_view name_end = {};        // one of these characters ends the name, as any mark does
  std::string_view call_id_mark = {};    // an id may come between it and the arguments
  std::string_view arguments_mark = {};  // before the arguments
  bool may_lack_arguments_mark = false;
  std::string_view after_arguments = {};
  std::string_view before_mark = {};     // may stand between the name and arguments_mark

  // kNamedJson, kTagged: around the number of the call, behind its name.
  std::string_view index_open = {};
  std::string_view index_close = {};

  // kTagged. Behind a name or a key may stand attributes: text" string="true.
  std::string_view call_open = {};  // before the name
  std::string_view call_close = {};
  std::string_view name_close = {};  // empty: a line's end
  std::string_view key_open = {};
  std::string_view key_close = {};
  std::string_view value_open = {};  // after blanks
  std::string_view value_close = {};
  // Attributes of a string, and of another value; empty: none are written.
  std::string_view string_attribute = {};
  std::array<std::string_view, 5> json_attributes = {};
  bool has_cdata = false;        // a value may stand in <![CDATA[ ]]>
  bool has_value_lines = false;  // a line break behind key_close and before value_close is not the value's

  // kNested, with call_open, call_close and name_close. It comes before each tag.
  std::string_view tag_mark = {};

  // kDict
  std::string_view quote = {};  // before a string, and behind it

  // Further control tokens that frame an answer and are no one's words.
  std::array<std::string_view, 6> frame = {};

  // A text of the template's source that tells the family where rendering cannot; all must be there.
  std::array<std::string_view, 2> source_marks = {};
};

// Most special first: of two that read the same text, the first is meant.
std::span<const ToolCallSyntax> tool_call_syntaxes();
// By its family's name; the family must be there.
const ToolCallSyntax& tool_call_syntax(std::string_view family);

// Between them a model thinks, and calls nothing.
struct ReasoningMarks {
  std::string_view open, close;
};
std::span<const ReasoningMarks> reasoning_marks();
// Marks that some models put around the answer behind their reasoning.
std::span<const ReasoningMarks> answer_marks();

}  // namespace kvasir::grammar
