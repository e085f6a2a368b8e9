#include "text/chat_json.h"

#include <gtest/gtest.h>

namespace kvasir::text::chat_json_test {
namespace {

std::string fault_of(std::string_view messages, std::string_view tools = {}, std::string_view kwargs = {}) {
  const auto inputs = read_chat(messages, tools, kwargs);
  if (inputs) return "";
  EXPECT_EQ(inputs.error().kind, ErrorKind::kUsage);
  return inputs.error().message;
}

TEST(ChatJson, MessagesReachTheTemplateAsTheyAre) {
  const auto inputs =
      read_chat(R"([{"role":"user","content":"hi","name":"Ada"}])", "", R"({"enable_thinking":false})");
  ASSERT_TRUE(inputs) << inputs.error().message;
  const auto chat_template = ChatTemplate::parse(
      "{{ messages[0].role }} {{ messages[0].name }}: {{ messages[0].content }} {{ tools is none }} {{ "
      "enable_thinking }}");
  ASSERT_TRUE(chat_template);
  EXPECT_EQ(chat_template->render(make_globals(*inputs)).value(), "user Ada: hi True False");
}

TEST(ChatJson, ToolCallsNeedNoContent) {
  EXPECT_EQ(fault_of(R"([{"role":"assistant","tool_calls":[]}])"), "");
  EXPECT_EQ(fault_of(R"([{"role":"assistant","content":null,"tool_calls":[]}])"), "");
}

TEST(ChatJson, AnAssistantMayHaveSaidNothing) {
  const auto inputs = read_chat(R"([{"role":"assistant","content":null},{"role":"assistant"}])", "", "");
  ASSERT_TRUE(inputs) << inputs.error().message;
  for (const jinja::Value& message : inputs->messages.as_list().items) {
    EXPECT_EQ(message.as_dict().find("content")->as_string(), "");
  }
}

TEST(ChatJson, AnErrorNamesWhatIsWrong) {
  constexpr std::string_view kFine = R"([{"role":"user","content":"hi"}])";
  EXPECT_EQ(fault_of("[]"), "messages: must be an array of at least one object");
  EXPECT_EQ(fault_of(R"({"role":"user"})"), "messages: must be an array of at least one object");
  EXPECT_EQ(fault_of("[7]"), "messages: messages[0] must be an object, is int");
  EXPECT_EQ(fault_of(R"([{"content":"hi"}])"), "messages: messages[0] needs a role, a string");
  EXPECT_EQ(fault_of(R"([{"role":"user","content":"hi"},{"role":"user"}])"),
            "messages: messages[1] has no content");
  EXPECT_EQ(fault_of(R"([{"role":"user","content":null}])"),
            "messages: messages[0].content must be a string or a list of parts, is NoneType");
  EXPECT_EQ(fault_of(kFine, "{}"), "tools: must be an array");
  EXPECT_EQ(fault_of(kFine, "", "[]"), "template_kwargs: must be an object");
  EXPECT_EQ(fault_of(kFine, "", R"({"tools":[]})"), "template_kwargs: tools has a place of its own");
  EXPECT_TRUE(fault_of("[{").starts_with("messages: "));
}

}  // namespace
}  // namespace kvasir::text::chat_json_test
