// An output item that calls a tool: a function_call or a custom_tool_call.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/api/tool_calls/tool_call_reader.h"
#include "server/api/tools.h"
#include "server/id_source.h"

namespace kvasir::server::api {

struct CallItem {
  std::string id, call_id;
  ToolCall call;      // by the name that the model sees
  ToolOrigin origin;  // as the client knows the tool
  bool is_custom() const { return origin.is_custom; }
};

// Its id is the caller's to give.
CallItem begin_call_item(ToolCall call, std::span<const ToolOrigin> origins, IdSource& ids);
// The item as JSON. One in progress has no arguments yet.
std::string call_item_json(const CallItem& item, std::string_view status);
// The call's arguments, or the text of a custom tool's.
std::string call_text(const CallItem& item);

}  // namespace kvasir::server::api
