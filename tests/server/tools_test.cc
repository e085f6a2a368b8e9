// Tools as the three APIs give them, and as a template sees them.
#include "server/api/tools.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/api/tool_choice.h"
#include "text/chat_template.h"

namespace kvasir::server::tools_test {
namespace {

constexpr char kEmptySchema[] = R"({"type": "object", "properties": {}})";

ApiResult<api::Tools> read(std::string_view json, const api::ToolShape& shape) {
  static const Limits limits;
  const api::JsonDocument document = api::JsonDocument::parse(json, limits).value();
  return api::read_tools({"tools", *api::find_member(document.root(), "tools"), limits}, shape);
}

std::string shown(std::string_view json, const api::ToolShape& shape) {
  const api::Tools tools = read(json, shape).value();
  const auto shows = text::ChatTemplate::parse("{{ tools[0] | tojson }}").value();
  return shows.render(text::make_globals({.messages = text::make_messages({}), .tools = tools.list})).value();
}

std::string param_of(std::string_view json, const api::ToolShape& shape) {
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
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","function":{"name":"f"}}]})", api::kChatTools),
            function_of("", kEmptySchema));
  EXPECT_EQ(
      shown(R"({"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]})", api::kChatTools),
      function_of("", kEmptySchema));
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","name":"f","parameters":null}]})", api::kResponsesTools),
            function_of("", kEmptySchema));
}

TEST(Tools, AreOneFormForAllApis) {
  const std::string form = function_of("Does.", R"({"type": "object"})");
  EXPECT_EQ(shown(R"({"tools":[{"function":{"parameters":{"type":"object"},"description":"Does.","name":"f",)"
                  R"("strict":false},"type":"function"}]})",
                  api::kChatTools),
            form);
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","name":"f","description":"Does.",)"
                  R"("parameters":{"type":"object"},"strict":false}]})",
                  api::kResponsesTools),
            form);
  EXPECT_EQ(shown(R"({"tools":[{"name":"f","description":"Does.","input_schema":{"type":"object"},)"
                  R"("cache_control":{"type":"ephemeral"}}]})",
                  api::kAnthropicTools),
            form);
}

TEST(Tools, KeepWhatElseDescribesAFunction) {
  EXPECT_EQ(shown(R"({"tools":[{"type":"function","function":{"name":"f","return":{"type":"number"}}}]})",
                  api::kChatTools),
            function_of("", kEmptySchema, R"(, "return": {"type": "number"})"));
}

TEST(Tools, ThatAreNoFunctionsAreLeftOut) {
  const api::Tools tools = read(R"({"tools":[{"type":"web_search"},{"type":"function","name":"f"},)"
                                R"({"type":"local_shell","name":"patch"},{"type":"function","name":"g"}]})",
                                api::kResponsesTools)
                               .value();
  EXPECT_EQ(tools.names, (std::vector<std::string>{"f", "g"}));
  EXPECT_EQ(tools.list.as_list().items.size(), 2u);
}

TEST(Tools, OfATextAreFunctionsOfOne) {
  const std::string json = R"({"tools":[{"type":"custom","name":"patch","description":"Applies.",)"
                           R"("format":{"type":"grammar","syntax":"lark","definition":"start: X"}}]})";
  EXPECT_EQ(shown(json, api::kResponsesTools),
            R"({"type": "function", "function": {"name": "patch", "description": )"
            R"("Applies.\nThe input follows this grammar:\nstart: X", "parameters": {"type": "object", )"
            R"("properties": {"input": {"type": "string"}}, "required": ["input"]}}})");
  const api::Tools tools = read(json, api::kResponsesTools).value();
  ASSERT_EQ(tools.origins.size(), 1u);
  EXPECT_TRUE(tools.origins[0].is_custom);
  EXPECT_EQ(api::custom_input_of(R"({"input": "a\nb"})"), "a\nb");
  EXPECT_EQ(api::custom_input_of(R"({"text": 1})"), R"({"text": 1})");
  EXPECT_EQ(api::custom_input_of(R"({"inp)"), R"({"inp)");
}

TEST(Tools, OfANamespaceHaveItsNameBeforeTheirs) {
  const api::Tools tools =
      read(R"({"tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find"},)"
           R"({"type":"custom","name":"note"}]},{"type":"namespace","name":"mcp__db__","tools":)"
           R"([{"type":"function","name":"find"}]},{"type":"namespace","name":"functions","tools":)"
           R"([{"type":"function","name":"shell"}]},{"type":"function","name":"f"}]})",
           api::kResponsesTools)
          .value();
  EXPECT_EQ(tools.names,
            (std::vector<std::string>{"crm__find", "crm__note", "mcp__db__find", "shell", "f"}));
  const api::ToolOrigin* const find = api::find_origin(tools.origins, "mcp__db__find");
  ASSERT_NE(find, nullptr);
  EXPECT_EQ(find->name, "find");
  EXPECT_EQ(find->space, "mcp__db__");
  EXPECT_EQ(api::find_origin(tools.origins, "f"), nullptr);
}

TEST(Tools, AreThoseThatTheChoiceAllows) {
  static const Limits limits;
  const api::JsonDocument
      document = api::JsonDocument::parse(
                     R"({"tools":[{"function":{"name":"f"}},{"function":{"name":"g"}}],)"
                     R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto",)"
                     R"("tools":[{"type":"function","function":{"name":"g"}}]}}})",
                     limits)
                     .value();
  const auto member = [&](std::string_view name) {
    return api::FieldInput{std::string(name), *api::find_member(document.root(), name), limits};
  };
  api::ChatRequest request;
  api::Warnings warnings;
  api::Tools tools = api::read_tools(member("tools"), api::kChatTools).value();
  request.tools = tools.list;
  request.tool_names = tools.names;
  request.tool_schemas = std::move(tools.schemas);
  ASSERT_TRUE(api::read_openai_tool_choice(member("tool_choice"), request));
  api::keep_allowed_tools(request, warnings);
  EXPECT_EQ(request.tool_names, (std::vector<std::string>{"g"}));
  EXPECT_EQ(request.tools.as_list().items.size(), 1u);
  EXPECT_TRUE(warnings.messages.empty());
}

TEST(Tools, NameThePartAtFault) {
  EXPECT_EQ(param_of(R"({"tools":[{"type":"function"}]})", api::kChatTools), "tools[0].function");
  EXPECT_EQ(param_of(R"({"tools":[{"type":5}]})", api::kResponsesTools), "tools[0].type");
  EXPECT_EQ(param_of(R"({"tools":[{"type":"function","name":"f","strict":2}]})", api::kResponsesTools),
            "tools[0].strict");
  EXPECT_EQ(param_of(R"({"tools":[{"name":"f","input_schema":1}]})", api::kAnthropicTools), "tools[0].input_schema");
  EXPECT_EQ(
      param_of(R"({"tools":[{"type":"function","function":{"name":"f","description":1}}]})", api::kChatTools),
      "tools[0].function.description");
  EXPECT_EQ(param_of(R"({"tools":[{"type":"function","function":{"name":"f","parameters":[1]}}]})",
                     api::kChatTools),
            "tools[0].function.parameters");
}

}  // namespace
}  // namespace kvasir::server::tools_test
