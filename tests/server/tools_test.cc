// Tools as the three APIs give them, and as a template sees them.
#include "server/api/tools.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "text/template/chat_template.h"

namespace kvasir::server {
namespace {

constexpr char kEmptySchema[] = R"({"type": "object", "properties": {}})";

ApiResult<Tools> read(std::string_view json, const ToolShape& shape) {
  static const Limits limits;
  const JsonDocument document = JsonDocument::parse(json, limits).value();
  return read_tools({"tools", *find_member(document.root(), "tools"), limits}, shape);
}

std::string shown(std::string_view json, const ToolShape& shape) {
  const Tools tools = read(json, shape).value();
  const auto shows = text::ChatTemplate::parse("{{ tools[0] | tojson }}").value();
  return shows.render(text::make_globals({.messages = text::make_messages({}), .tools = tools.list})).value();
}

std::string param_of(std::string_view json, const ToolShape& shape) {
  return read(json, shape).error().param;
}

std::string function_of(std::string_view description, std::string_view schema, std::string_view more = "") {
  return std::string(R"({"type": "function", "function": {"name": "f", "description": ")")
      .append(description)
      .append(R"(", "parameters": )")
      .append(schema)
      .append(more)
      .append("}}");
}

TEST(Tools, HaveDescriptionAndParametersWhateverIsLeftOut) {
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","function":{"name":"f"}}]})", kChatTools),
            function_of("", kEmptySchema));
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]})", kChatTools),
            function_of("", kEmptySchema));
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","name":"f","parameters":null}]})", kResponsesTools),
            function_of("", kEmptySchema));
}

TEST(Tools, AreOneFormForAllApis) {
  const std::string form = function_of("Does.", R"({"type": "object"})");
  EXPECT_EQ(shown(R"({"tools":[{"function":{"parameters":{"type":"object"},"description":"Does.","name":"f",)"
                  R"("strict":false},"type":"function"}]})",
                  kChatTools),
            form);
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","name":"f","description":"Does.",)"
                  R"("parameters":{"type":"object"},"strict":false}]})",
                  kResponsesTools),
            form);
  EXPECT_EQ(shown(R"({"tools":[{"name":"f","description":"Does.","input_schema":{"type":"object"},)"
                  R"("cache_control":{"type":"ephemeral"}}]})",
                  kAnthropicTools),
            form);
}

TEST(Tools, KeepWhatElseDescribesAFunction) {
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","function":{"name":"f","return":{"type":"number"}}}]})",
                  kChatTools),
            function_of("", kEmptySchema, R"(, "return": {"type": "number"})"));
}

TEST(Tools, NameThePartAtFault) {
  EXPECT_EQ(param_of(R"({"tools":[{"type":"function"}]})", kChatTools), "tools[0].function");
  EXPECT_EQ(param_of(R"({"tools":[{"type":"web_search"}]})", kResponsesTools), "tools[0].type");
  EXPECT_EQ(param_of(R"({"tools":[{"type":"function","name":"f","strict":true}]})", kResponsesTools),
            "tools[0].strict");
  EXPECT_EQ(param_of(R"({"tools":[{"name":"f"}]})", kAnthropicTools), "tools[0].input_schema");
  EXPECT_EQ(
      param_of(R"({"tools":[{"type":"function","function":{"name":"f","description":1}}]})", kChatTools),
      "tools[0].function.description");
  EXPECT_EQ(
      param_of(R"({"tools":[{"type":"function","function":{"name":"f","parameters":[1]}}]})", kChatTools),
      "tools[0].function.parameters");
}

}  // namespace
}  // namespace kvasir::server
