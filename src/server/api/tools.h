// The functions that a request shows the model, in the form that chat templates read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// A tool whose calls are told otherwise than a plain function's.
struct ToolOrigin {
  std::string shown_name;  // among Tools::names
  std::string name;        // as the client knows it
  std::string space;       // the namespace that has it; empty: none
  bool is_custom = false;  // takes a text instead of arguments
};

// The arguments that a tool takes.
struct ToolSchema {
  std::string json;        // as the client wrote it; empty: it gave none
  bool is_strict = false;  // arguments have to satisfy it
  std::string field;       // that has it
};

struct Tools {
  jinja::Value list;
  std::vector<std::string> names;
  std::vector<ToolSchema> schemas;  // by name
  std::vector<ToolOrigin> origins;
};

// Null: a plain function.
const ToolOrigin* find_origin(std::span<const ToolOrigin> origins, std::string_view shown_name);
// The name that the model sees of a tool in a namespace; without one, and in OpenAI's own "functions", its own.
std::string shown_tool_name(std::string_view space, std::string_view name);
// A custom tool's text among the arguments that the model wrote: their "input", else all of them.
std::string custom_input_of(const std::string& arguments);

// Where an API has what a function is.
struct ToolShape {
  std::string_view type;             // what a function's type is, where one is said
  std::string_view function_member;  // that has name, description and schema; empty: the tool itself
  std::string_view schema_member;    // of that
  bool may_be_nested = false;        // as a chat's: many clients send it so
};
inline constexpr ToolShape kChatTools{
    .type = "function", .function_member = "function", .schema_member = "parameters"};
inline constexpr ToolShape kResponsesTools{
    .type = "function", .schema_member = "parameters", .may_be_nested = true};
inline constexpr ToolShape kAnthropicTools{
    .type = "custom", .schema_member = "input_schema", .may_be_nested = true};

// As dicts {"type": "function", "function": {"name", "description", "parameters"}} with all three, whatever a
// client leaves out: templates take them for granted. A function in a member of its own keeps its other
// members too ("return"), which some templates show. A custom tool is shown as a function of one text,
// "input", and the tools of a namespace with its name before theirs.
//
// Any other tool is left out, and a warning names it; so it is said that no text is held to its grammar. Errors (400)
// name the part at fault: no name, a limit.
ApiResult<Tools> read_tools(const FieldInput& field, const ToolShape& shape);

}  // namespace kvasir::server::api
