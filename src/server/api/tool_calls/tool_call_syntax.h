// How families of models write calls, under the names that this layer uses.
#pragma once

#include "grammar/tags/tool_call_syntax.h"

namespace kvasir::server::api {

using grammar::ReasoningMarks;
using grammar::ToolCallLayout;
using grammar::ToolCallSyntax;
using grammar::answer_marks;
using grammar::reasoning_marks;
using grammar::tool_call_syntax;
using grammar::tool_call_syntaxes;

}  // namespace kvasir::server::api
