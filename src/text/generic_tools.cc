#include "text/generic_tools.h"

#include <string_view>

#include "jinja/template.h"

namespace kvasir::text {
namespace {

using jinja::Value;

constexpr std::string_view kTools =
    "You may call functions to help with what the user asks. They are described here, one a line:\n"
    "<tools>\n{% for tool in tools %}{{ tool|tojson }}\n{% endfor %}</tools>\n\n"
    "To call one, answer with its name and its arguments as JSON between these marks:\n"
    "<tool_call>\n{\"name\": <name of the function>, \"arguments\": <object with its "
    "arguments>}\n</tool_call>";

constexpr std::string_view kCalls =
    "{{ text }}{% for call in calls %}{% set function = call.function or call %}"
    "{% if text or not loop.first %}{{ '\\n' }}{% endif %}"
    "<tool_call>\n{{ {'name': function.name, 'arguments': function.arguments}|tojson }}\n</tool_call>"
    "{% endfor %}";

constexpr std::string_view kJson = "{{ value|tojson }}";

// Empty when the text would be beyond the limits of a render.
std::string rendered(const jinja::Template& shape, std::vector<Value::Entry> globals) {
  return shape.render(Value::dict(std::move(globals))).value_or("");
}

}  // namespace

std::string tools_as_text(const Value& tools) {
  static const jinja::Template shape = jinja::Template::parse(kTools).value();
  return rendered(shape, {{Value::string("tools"), tools}});
}

std::string calls_as_text(const std::string& text, const Value& calls) {
  static const jinja::Template shape = jinja::Template::parse(kCalls).value();
  return rendered(shape, {{Value::string("text"), Value::string(text)}, {Value::string("calls"), calls}});
}

std::string tool_result_as_text(const std::string& result) {
  return "<tool_response>\n" + result + "\n</tool_response>";
}

std::string value_as_json(const Value& value) {
  static const jinja::Template shape = jinja::Template::parse(kJson).value();
  return rendered(shape, {{Value::string("value"), value}});
}

}  // namespace kvasir::text
