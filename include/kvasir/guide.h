// The form that an answer must have.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kvasir/tool_guide.h"

namespace kvasir {

namespace grammar {
class CompiledGrammar;
}
// A guide beside the vocabulary of one engine's model.
using CompiledGuide = std::shared_ptr<const grammar::CompiledGrammar>;

// An answer under a guide is a text of the guide, or ends with FinishReason::kLength on its way to one.
struct Guide {
  enum class Kind : std::uint8_t {
    kJsonSchema,  // a value that satisfies the schema `text` (docs/GUIDED.md)
    kRegex,       // a text that the regular expression `text` matches as a whole
    kChoice,      // one of `choices`
    kText,        // any text
    kGbnf,        // a text of the grammar `text`, in GBNF
    kXGrammar,    // the same in XGrammar's notation
    kStructuralTag,  // text with parts between marks, as the JSON `text` describes it
  };
  Kind kind = Kind::kJsonSchema;
  std::string text = {};
  std::vector<std::string> choices = {};
  std::vector<std::string> excluded = {};  // texts that do not occur in the answer; of kRegex, kChoice and kText
  bool is_strict = false;   // of a schema: objects have the members alone that it names, unless it says otherwise
  bool is_compact = false;  // JSON of a schema has no blanks
  // A block of reasoning goes before: any text up to its mark, and blanks. The marks may be control tokens.
  struct Reasoning {
    std::string open = {};  // empty: the prompt has opened it, so it has to be closed; else it may be left out
    std::string close = {};
  };
  std::optional<Reasoning> reasoning = {};
  // Calls may come instead, or have to (then of kText alone). Thoughts are theirs to say; `reasoning` does not count.
  std::optional<ToolGuide> tools = {};
  // Nobody asked for it: a server answers without it where it cannot be compiled.
  bool is_optional = false;
  std::string field = "guide";  // the request's field that has it, for errors
};

}  // namespace kvasir
