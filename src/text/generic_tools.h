// Tools, calls and their results as plain text, for chat templates that do not know them.
#pragma once

#include <string>

#include "jinja/value.h"

namespace kvasir::text {

// The form is that of Hermes, which many models have seen: functions as JSON between <tools></tools>, a call as
// <tool_call>{"name": ..., "arguments": ...}</tool_call>, a result between <tool_response></tool_response>.

// For the system message.
std::string tools_as_text(const jinja::Value& tools);
// What an assistant says with the calls, which follow its text.
std::string calls_as_text(const std::string& text, const jinja::Value& calls);
// For a user's message.
std::string tool_result_as_text(const std::string& result);

// The value as JSON, as a template's tojson writes it.
std::string value_as_json(const jinja::Value& value);

}  // namespace kvasir::text
