#include "server/api/tool_calls/tool_guide.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/printable.h"
#include "server/api/tool_calls/tool_call_reading.h"

namespace kvasir::server::api {
namespace {

// The tool as its calls can be guided; empty: they cannot, and it is not called.
ApiResult<std::optional<GuideTool>> guided_tool(KnownTools& known, const ChatRequest& request, std::size_t place,
                                                const ToolCallReading& reading, Warnings& warnings) {
  const std::string& name = request.tool_names[place];
  const ToolSchema& schema = request.tool_schemas[place];
  GuideTool tool = {.name = name,
                    .schema = schema.json,
                    .text_arguments = text_arguments(*find_tool(reading.tools, name))};
  const std::string fault = known.fault_of(reading.syntax->family, tool);
  if (fault.empty()) return tool;
  const auto refusal = bad_request(fmt::format("{}: {}", schema.field, printable_line(fault)), schema.field);
  if (schema.is_strict && request.must_call_tools()) return refusal;
  tool.schema.clear();
  if (known.fault_of(reading.syntax->family, tool).empty()) {
    warnings.add(fmt::format("{}: arguments are not held to the schema: {}", schema.field, printable_line(fault)));
    return tool;
  }
  if (request.must_call_tools()) return refusal;
  warnings.add(fmt::format("{}: it is not called: {}", schema.field, printable_line(fault)));
  return std::nullopt;
}

// None where the request wants none, unless the prompt has begun with them.
void add_thoughts(const ToolCallReading& reading, const ThinkingWish& wish, ToolGuide& guide) {
  if (!reading.starts_in_reasoning && (wish.is_enabled == false || wish.effort == "none")) return;
  const bool is_unknown = reading.starts_in_reasoning && reading.reasoning_marks.empty();
  const std::span<const ReasoningMarks> marks = is_unknown ? reasoning_marks() : reading.reasoning_marks;
  for (const ReasoningMarks& one : marks) guide.thoughts.emplace_back(one.open, one.close);
}

// The request says what form a text has.
ApiStatus check_text_beside_calls(const ChatRequest& request, const ToolCallSyntax& syntax) {
  if (request.must_call_tools()) {
    return bad_request(fmt::format("{}: a call is demanded, and {} says what form a text has", request.choice_field,
                                   request.guide->field),
                       request.choice_field);
  }
  if (!syntax.may_be_bare) return {};
  return not_supported(request.guide->field, "a form of the answer beside tools, whose calls need no mark,");
}

}  // namespace

ApiStatus guide_tool_calls(KnownTools& known, const ChatRequest& request, const ToolCallReading& reading,
                           Request& wanted, Warnings& warnings) {
  if (!request.may_call_tools() || reading.syntax == nullptr) return {};
  const bool is_demanded = request.must_call_tools();
  const bool has_strict = std::ranges::any_of(request.tool_schemas, &ToolSchema::is_strict);
  if (is_demanded && wanted.guide && wanted.guide->kind == Guide::Kind::kJsonSchema) {
    warnings.add(fmt::format("{} is left out: a call is demanded, so there is no text", wanted.guide->field));
    wanted.guide.reset();
  }
  const bool is_optional = !is_demanded && !has_strict && !wanted.guide;
  if (is_optional && reading.syntax->may_be_bare) return {};  // a text might be a call from its first character on
  if (wanted.guide) KVASIR_CHECKED(check_text_beside_calls(request, *reading.syntax));
  ToolGuide guide = {.family = std::string(reading.syntax->family),
                     .is_demanded = is_demanded,
                     .is_parallel = request.parallel_tool_calls && request.named_tool.empty(),
                     .starts_in_thoughts = reading.starts_in_reasoning,
                     .prompt_mark = reading.prompt_mark};
  for (std::size_t i = 0; i < request.tool_names.size(); ++i) {
    if (!request.named_tool.empty() && request.named_tool != request.tool_names[i]) continue;
    KVASIR_TRY(auto tool, guided_tool(known, request, i, reading, warnings));
    if (tool) guide.tools.push_back(*std::move(tool));
  }
  if (guide.tools.empty()) return {};
  add_thoughts(reading, request.thinking, guide);
  if (!wanted.guide) wanted.guide = Guide{.kind = Guide::Kind::kText, .field = request.choice_field};
  wanted.guide->is_optional = is_optional;
  wanted.guide->tools = std::move(guide);
  return {};
}

ApiResult<ToolCallReading> guided_tool_calls(const ApiContext& context, const ChatRequest& request, Request& wanted,
                                             http::ResponseWriter& writer) {
  ToolCallReading reading = tool_call_reading(context, request, wanted);
  Warnings warnings;
  KVASIR_CHECKED(guide_tool_calls(*context.tools, request, reading, wanted, warnings));
  add_warnings(warnings, writer);
  return reading;
}

}  // namespace kvasir::server::api
