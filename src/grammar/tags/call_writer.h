// One call in the layout of a family.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/derivatives.h"
#include "grammar/schema/json_value.h"
#include "grammar/tags/mark_writer.h"
#include "grammar/tags/tool_call_syntax.h"
#include "kvasir/result.h"
#include "kvasir/tool_guide.h"

namespace kvasir::grammar {

// Makes the text of a call between the mark that opens it and the one that closes it.
//
// Thread safety: none.
class CallWriter {
 public:
  // All outlive this.
  CallWriter(GrammarBuilder& builder, TermStore& store, const MarkWriter& marks, const ToolCallSyntax& syntax)
      : builder_(builder), store_(store), derivatives_(store), marks_(marks), syntax_(syntax) {}

  // A call of one of the tools. Errors name the tool: kUsage for a schema that is none, kUnmet for one that is not
  // supported and for a name or argument that the family cannot write.
  Result<Part> any_call(std::span<const GuideTool> tools);

  // Blanks that may stand between marks.
  Part gap();

 private:
  // A name, and what goes on behind it.
  struct NamedPart {
    std::string name;
    Part rest;
  };

  Status check_name(const GuideTool& tool) const;
  Result<RuleId> arguments(const GuideTool& tool);
  Result<Part> lower_arguments(const GuideTool& tool);
  Part by_name(std::span<const NamedPart> parts, std::size_t depth);
  Part quoted(std::string_view text) { return plain('"' + std::string(text) + '"'); }
  Part plain(std::string_view text) { return GrammarBuilder::text(store_.word(text)); }
  Part identifier(std::uint32_t min_chars, std::uint32_t max_chars);
  Part optional(const Part& part);
  bool writes_json() const;

  // Around the choice of a name.
  Part before_name();
  Part behind_name(const Part& arguments);
  Part behind_call();
  Part json_id_member(bool is_first);
  Part behind_json_name(const Part& arguments);
  Part behind_plain_name(const Part& arguments);
  Part behind_tagged_name(const Part& arguments);
  Part call_index();

  GrammarBuilder& builder_;
  TermStore& store_;
  Derivatives derivatives_;
  const MarkWriter& marks_;
  const ToolCallSyntax& syntax_;
  // Schemas as long as their names are in use.
  std::vector<std::unique_ptr<const JsonValue>> schemas_;
};

}  // namespace kvasir::grammar
