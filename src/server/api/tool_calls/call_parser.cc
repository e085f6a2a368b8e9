#include "server/api/tool_calls/call_parser.h"

#include <algorithm>

namespace kvasir::server::api {

std::size_t partial_mark(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length) {
    if (text.ends_with(mark.substr(0, length))) return length;
  }
  return 0;
}

std::unique_ptr<CallParser> make_call_parser(const ToolCallSyntax& syntax,
                                             std::span<const ToolSignature> tools, bool is_bare) {
  switch (syntax.layout) {
    case ToolCallLayout::kNamedJson:
      return make_named_json_call(syntax, tools);
    case ToolCallLayout::kKeyedJson:
      return make_keyed_json_call(syntax, tools);
    case ToolCallLayout::kTagged:
      return make_tagged_call(syntax, tools);
    case ToolCallLayout::kNested:
      return make_nested_call(syntax, tools);
    case ToolCallLayout::kDict:
    case ToolCallLayout::kPythonic:
      return make_loose_call(syntax, tools);
    case ToolCallLayout::kJson:
      break;
  }
  return make_json_call(syntax, tools, is_bare);
}

}  // namespace kvasir::server::api
