// The functions that a request shows the model, in the form that chat templates read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

struct Tools {
  jinja::Value list;
  std::vector<std::string> names;
};

// Where an API has what a function is.
struct ToolShape {
  std::string_view type;             // what a function's type is, where one is said
  std::string_view function_member;  // that has name, description and schema; empty: the tool itself
  std::string_view schema_member;    // of that
  bool may_lack_schema = true;       // and takes nothing then
  bool may_be_nested = false;        // as a chat's: many clients send it so
};
inline constexpr ToolShape kChatTools{
    .type = "function", .function_member = "function", .schema_member = "parameters"};
inline constexpr ToolShape kResponsesTools{
    .type = "function", .schema_member = "parameters", .may_be_nested = true};
inline constexpr ToolShape kAnthropicTools{
    .type = "custom", .schema_member = "input_schema", .may_lack_schema = false};

// As dicts {"type": "function", "function": {"name", "description", "parameters"}} with all three, whatever a
// client leaves out: templates take them for granted. A function in a member of its own keeps its other
// members too ("return"), which some templates show.
//
// A tool that is no function is left out, and a warning names it; so it is said that no arguments are held to
// their schema (strict). Errors (400) name the part at fault: no name, no schema, a limit.
ApiResult<Tools> read_tools(const FieldInput& field, const ToolShape& shape);

}  // namespace kvasir::server::api
