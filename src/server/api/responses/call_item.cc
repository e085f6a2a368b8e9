#include "server/api/responses/call_item.h"

#include <utility>

#include "base/json_writer.h"

namespace kvasir::server::api {

CallItem begin_call_item(ToolCall call, std::span<const ToolOrigin> origins, IdSource& ids) {
  const ToolOrigin* const known = find_origin(origins, call.name);
  ToolOrigin origin = known != nullptr ? *known : ToolOrigin{.shown_name = call.name, .name = call.name, .space = {}};
  return {.id = {}, .call_id = ids.next("call_"), .call = std::move(call), .origin = std::move(origin)};
}

std::string call_text(const CallItem& item) {
  return item.is_custom() ? custom_input_of(item.call.arguments) : item.call.arguments;
}

std::string call_item_json(const CallItem& item, std::string_view status) {
  const bool is_begun = status == "in_progress";
  std::string text;
  JsonWriter json(text);
  json.begin_object()
      .member("id", item.id)
      .member("type", item.is_custom() ? "custom_tool_call" : "function_call")
      .member("status", status)
      .member("call_id", item.call_id)
      .member("name", item.origin.name);
  if (!item.origin.space.empty()) json.member("namespace", item.origin.space);
  json.member(item.is_custom() ? "input" : "arguments", is_begun ? std::string() : call_text(item)).end_object();
  return text;
}

}  // namespace kvasir::server::api
