#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace kvasir::text::chat_template_test {
namespace {

using jinja::Value;

Result<std::string> render(std::string_view source, const Value& globals = Value::dict({}),
                           const jinja::RenderOptions& options = {}) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->render(globals, options);
}

Error error_of(std::string_view source, const jinja::RenderOptions& options = {}) {
  const auto text = render(source, Value::dict({}), options);
  EXPECT_FALSE(text) << *text;
  return text ? Error{} : text.error();
}

constexpr std::string_view kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

TEST(ChatTemplate, RendersSimpleMessages) {
  const std::array<ChatMessage, 2> messages = {{{"system", "Be brief."}, {"user", "Hi {{ name }}"}}};
  const auto text = render(kChatMl, make_globals({.messages = make_messages(messages)}));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi {{ name }}<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatTemplate, PassesTokensToolsAndExtraVariables) {
  ChatTemplateInputs inputs;
  inputs.bos_token = "<s>";
  inputs.extra.emplace_back("enable_thinking", Value::boolean(false));
  const auto text =
      render("{{ bos_token }}|{{ eos_token }}|{{ tools }}|{{ enable_thinking }}", make_globals(inputs));
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "<s>||None|False");
}

TEST(ChatTemplate, ErrorsNameTheTemplateLine) {
  EXPECT_EQ(error_of("a\nb\n{{ raise_exception('roles must alternate') }}").message,
            "chat template, line 3: roles must alternate");
  EXPECT_EQ(error_of("{{ raise_exception('x') }}").kind, ErrorKind::kUsage);
  EXPECT_EQ(error_of("\n{{ x.y }}").message, "chat template, line 2: 'x' is undefined");
  EXPECT_EQ(error_of("\n\n{% endif %}").message, "chat template, line 3: unknown tag, got 'endif'");
  EXPECT_EQ(error_of("\n\n{% endif %}").kind, ErrorKind::kBadFile);
}

TEST(ChatTemplate, RendersOnManyThreadsAtOnce) {
  const auto parsed = ChatTemplate::parse(kChatMl);
  ASSERT_TRUE(parsed);
  const std::array<ChatMessage, 1> messages = {{{"user", "Hello"}}};
  const Value globals = make_globals({.messages = make_messages(messages)});
  const std::string expected = parsed->render(globals).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) EXPECT_EQ(parsed->render(globals).value(), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kvasir::text::chat_template_test
