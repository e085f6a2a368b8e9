// What a conversation of each protocol becomes for templates that take not every one.
#include "server/api/chat_prompt.h"

#include <gtest/gtest.h>

#include <string>

#include "server/api/anthropic/messages_request.h"
#include "server/api/openai/chat_fields.h"
#include "server/api/responses/responses_request.h"
#include "text/testing/synthetic_vocab.h"

namespace kvasir::server::chat_prompt_test {
namespace {

constexpr std::string_view kStrict =
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('first') }}{% "
    "endif %}"
    "{% if m.role not in ['system', 'user', 'assistant', 'tool'] %}{{ raise_exception('role') }}{% endif %}"
    "{{ m.role }}:{{ m.content }};{% endfor %}{{ '>' if add_generation_prompt }}";

template <class Parse>
std::string prompt_of(Parse parse, std::string_view source, std::string_view body) {
  const auto tokenizer = text::Tokenizer::create(text::byte_level_vocab({{"Q", "Q"}})).value();
  api::Warnings warnings;
  const Limits limits;
  const auto request = parse(body, limits, warnings);
  if (!request) return request.error().message;
  const auto ids = api::chat_prompt(*request, text::ChatTemplate::parse(source).value(), *tokenizer);
  return ids ? tokenizer->decode(*ids, true) : ids.error().message;
}

std::string chat(std::string_view source, std::string_view body) {
  return prompt_of(api::parse_chat_request, source, body);
}

TEST(ChatPrompt, SystemAndDeveloperThatLeadAreOne) {
  EXPECT_EQ(chat(kStrict, R"({"messages":[{"role":"system","content":"a"},{"role":"developer","content":"b"},
                             {"role":"user","content":"c"}]})"),
            "system:a\n\nb;user:c;>");
  EXPECT_EQ(prompt_of(api::parse_responses_request, kStrict,
                      R"({"instructions":"a","input":[{"type":"message","role":"developer","content":
                         [{"type":"input_text","text":"b"}]},{"role":"user","content":"c"}]})"),
            "system:a\n\nb;user:c;>");
}

TEST(ChatPrompt, ASystemMessageBehindOthersIsShown) {
  EXPECT_EQ(prompt_of(api::parse_messages_request, kStrict,
                      R"({"max_tokens":1,"system":"a","messages":[{"role":"user","content":"b"},
                         {"role":"system","content":"c"}]})"),
            "system:a;user:b;user:c;>");
}

TEST(ChatPrompt, DocumentsReachATemplateThatReadsThem) {
  constexpr std::string_view
      kBody = R"({"messages":[{"role":"user","content":"a"}],"documents":[{"title":"One","text":"b"}]})";
  EXPECT_EQ(
      chat("{% for d in documents %}{{ d.title }}={{ d.text }};{% endfor %}{{ messages[0].content }}", kBody),
      "One=b;a");
  EXPECT_EQ(chat(kStrict, kBody), "documents: the model's chat template shows none");
}

TEST(ChatPrompt, PartsKeepTheirFields) {
  constexpr std::string_view kReadsParts =
      "{% for m in messages %}{% if m.content is string %}{{ raise_exception('parts') }}{% endif %}"
      "{{ m.content[0].from }}>{{ m.content[0].to }}:{{ m.content[0].text }}{% endfor %}";
  EXPECT_EQ(
      chat(kReadsParts,
           R"({"messages":[{"role":"user","content":[{"type":"text","from":"cs","to":"de","text":"a"}]}]})"),
      "cs>de:a");
  EXPECT_EQ(
      prompt_of(
          api::parse_responses_request, kReadsParts,
          R"({"input":[{"role":"user","content":[{"type":"input_text","from":"cs","to":"de","text":"a"}]}]})"),
      "cs>de:a");
}

TEST(ChatPrompt, ReasoningHasTwoNames) {
  constexpr std::string_view
      kThinks = "{% for m in messages %}({{ m.reasoning_content }}){{ m.content }}{% endfor %}";
  EXPECT_EQ(chat(kThinks, R"({"messages":[{"role":"assistant","content":"a","reasoning":"b"}]})"), "(b)a");
  EXPECT_EQ(chat(kThinks, R"({"messages":[{"role":"assistant","content":"a","reasoning_content":"b"}]})"),
            "(b)a");
  EXPECT_EQ(prompt_of(api::parse_messages_request, kThinks,
                      R"({"max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"thinking",
                         "thinking":"b","signature":"s"},{"type":"text","text":"a"}]},{"role":"user","content":"c"}]})"),
            "(b)a()c");
  EXPECT_EQ(
      prompt_of(api::parse_responses_request, kThinks,
                R"({"input":[{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"b"}]},
                         {"role":"assistant","content":"a"},{"role":"user","content":"c"}]})"),
      "(b)a()c");
}

TEST(ChatPrompt, EndsWithinTheLastMessageWhenItIsContinued) {
  EXPECT_EQ(chat(kStrict, R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],
                             "continue_final_message":true,"add_generation_prompt":false})"),
            "user:a;assistant:b");
  EXPECT_EQ(
      prompt_of(
          api::parse_messages_request, kStrict,
          R"({"max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})"),
      "user:a;assistant:b");
  // A template that drops what an assistant said.
  EXPECT_EQ(
      prompt_of(
          api::parse_messages_request, "{{ messages[0].content }}>",
          R"({"max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})"),
      "a>b");
}

TEST(ChatPrompt, ToolsChooseTheTemplateThatIsForThem) {
  const auto tokenizer = text::Tokenizer::create(text::byte_level_vocab({{"Q", "Q"}})).value();
  auto chat_template = text::ChatTemplate::parse("plain {{ messages[0].content }}").value();
  chat_template.set_for_tools(
      text::ChatTemplate::parse("<tool_call> {{ tools | length }} {{ messages[0].content }}").value());
  for (const std::string_view tools : {"", R"(,"tools":[{"type":"function","function":{"name":"f"}}])"}) {
    api::Warnings warnings;
    const Limits limits;
    const auto request = api::parse_chat_request(
        R"({"messages":[{"role":"user","content":"a"}])" + std::string(tools) + "}", limits, warnings);
    const auto ids = api::chat_prompt(request.value(), chat_template, *tokenizer).value();
    EXPECT_EQ(tokenizer->decode(ids, true), tools.empty() ? "plain a" : "<tool_call> 1 a");
  }
}

}  // namespace
}  // namespace kvasir::server::chat_prompt_test
