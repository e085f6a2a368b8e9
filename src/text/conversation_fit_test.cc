#include "text/conversation_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "text/testing/synthetic_vocab.h"
#include "text/tokenizer.h"
#include "text/user_text.h"

namespace kvasir::text::conversation_fit_test {
namespace {

using jinja::Value;

const std::filesystem::path kTemplates = std::filesystem::path(KVASIR_SOURCE_DIR) / "tests/cases/template";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Those of strict.txt by the names there, and those of the folder.
std::map<std::string, std::string> families() {
  std::map<std::string, std::string> all;
  const std::string strict = read_file(kTemplates / "strict.txt");
  for (std::size_t at = strict.find("=== "); at != std::string::npos;) {
    const std::size_t end_of_name = strict.find('\n', at);
    const std::size_t next = strict.find("\n=== ", end_of_name);
    all[strict.substr(at + 4, end_of_name - at - 4)] = strict.substr(
        end_of_name + 1, next == std::string::npos ? next : next - end_of_name - 1);
    at = next == std::string::npos ? next : next + 1;
  }
  for (const auto& entry : std::filesystem::directory_iterator(kTemplates / "families")) {
    if (entry.path().extension() == ".jinja") all[entry.path().stem().string()] = read_file(entry.path());
  }
  return all;
}

// One letter a message: s system, u user, U user in parts, a assistant, c assistant that calls, C twice, t tool.
// Each says a word of its own.
Value conversation(std::string_view shape, std::vector<std::string>& words) {
  std::vector<Value> messages;
  const std::map<char, std::string> roles = {{'s', "system"},    {'u', "user"},      {'U', "user"},
                                             {'a', "assistant"}, {'c', "assistant"}, {'C', "assistant"},
                                             {'t', "tool"}};
  for (const char letter : shape) {
    const std::string word = "word" + std::string(1, letter) + std::to_string(messages.size()) + "x";
    const std::string role = roles.at(letter);
    if (role != "assistant") words.push_back(word);
    std::string json = R"({"role":")" + role + R"(",)";
    if (letter == 'U') {
      json += R"("content":[{"type":"text","text":")" + word + R"("}])";
    } else {
      json += R"("content":")" + word + R"(")";
    }
    const std::string call =
        R"({"id":"call12345","type":"function","function":{"name":"look","arguments":{"where":"here"}}})";
    if (letter == 'c') json += R"(,"tool_calls":[)" + call + "]";
    if (letter == 'C') json += R"(,"tool_calls":[)" + call + "," + call + "]";
    if (letter == 't') json += R"(,"tool_call_id":"call12345","name":"look")";
    messages.push_back(Value::from_json(json + "}").value());
  }
  return Value::list(std::move(messages));
}

// Conversations that clients send.
std::vector<std::string> shapes() {
  std::vector<std::string> all;
  for (const std::string systems : {"", "s", "ss"}) {
    for (const std::string rest :
         {"u",     "U",    "uau",  "uu",  "uUu",  "au", "uaau", "uasu", "us",   "uas",
          "uctau", "uctu", "uCtt", "uct", "usau", "a",  "ua",   "tu",   "usst", "uaucta"}) {
      all.push_back(systems + rest);
    }
  }
  all.push_back("s");
  all.push_back("ss");
  return all;
}

Result<jinja::TracedText> fitted(const ChatTemplate& chat_template, Value messages, bool continues = false) {
  ChatTemplateInputs inputs;
  inputs.messages = std::move(messages);
  inputs.bos_token = "<s>";
  inputs.eos_token = "</s>";
  inputs.continues_last_message = continues;
  return render_fitted(inputs, chat_template);
}

TEST(ConversationFit, EveryFamilyShowsEveryConversation) {
  const auto all = families();
  EXPECT_GE(all.size(), 40u);
  for (const auto& [name, source] : all) {
    const auto chat_template = ChatTemplate::parse(source);
    ASSERT_TRUE(chat_template) << name << ": " << chat_template.error().message;
    for (const std::string& shape : shapes()) {
      std::vector<std::string> words;
      const auto text = fitted(*chat_template, conversation(shape, words));
      if (!text) {
        ADD_FAILURE() << name << " / " << shape << ": " << text.error().message;
        continue;
      }
      for (const std::string& word : words) {
        EXPECT_NE(text->bytes().find(word), std::string::npos) << name << " / " << shape << "\n"
                                                               << text->bytes();
      }
      if (shape.find_first_of("cC") != std::string::npos) {
        EXPECT_NE(text->bytes().find("look"), std::string::npos) << name << " / " << shape;
      }
    }
  }
}

TEST(ConversationFit, EveryFamilyContinuesAnAnswer) {
  for (const auto& [name, source] : families()) {
    const auto chat_template = ChatTemplate::parse(source).value();
    for (const std::string shape : {"ua", "sua", "suaa", "uctua", "a"}) {
      std::vector<std::string> words;
      const auto text = fitted(chat_template, conversation(shape, words), /*continues=*/true);
      if (!text) {
        ADD_FAILURE() << name << " / " << shape << ": " << text.error().message;
        continue;
      }
      const std::string last = "worda" + std::to_string(shape.size() - 1) + "x";
      EXPECT_TRUE(text->bytes().ends_with(last)) << name << " / " << shape << "\n" << text->bytes();
    }
  }
}

constexpr std::array<std::string_view, 10> kControls = {
    "<|im_start|>",    "<|im_end|>",    "[INST]",     "[/INST]",     "</s>",
    "<start_of_turn>", "<end_of_turn>", "<|eot_id|>", "<tool_call>", "</tool_response>"};

std::unique_ptr<Tokenizer> tokenizer_with_controls() {
  VocabData data = byte_level_vocab({{"Q", "Q"}});
  for (const std::string_view control : kControls) add_token(data, std::string(control), TokenType::kControl);
  return Tokenizer::create(std::move(data)).value();
}

// What becomes of a conversation whose texts all have `inner` within them.
std::ptrdiff_t count_controls(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                              std::string_view shape, const std::string& inner) {
  std::vector<std::string> words;
  const Value plain = conversation(shape, words);
  std::vector<Value> messages;
  for (const Value& message : plain.as_list().items) {
    const std::string text = message.as_dict().find("content")->as_string() + " said by somebody";
    std::vector<Value::Entry> entries = message.as_dict().entries();
    for (auto& [key, value] : entries) {
      if (key.as_string() == "content") value = Value::string(text + inner + " end");
    }
    messages.push_back(Value::dict(std::move(entries)));
  }
  const auto prompt = fitted(chat_template, Value::list(std::move(messages))).value();
  const std::vector<std::size_t> plain_at = plain_positions(prompt, tokenizer);
  const auto ids = tokenizer.encode(prompt.bytes(), {.parse_special = true, .plain_at = plain_at});
  return std::ranges::count_if(ids, [&](TokenId id) { return tokenizer.vocab().is_hidden(id); });
}

TEST(ConversationFit, NoFamilyMakesAControlTokenOfAUsersText) {
  const auto tokenizer = tokenizer_with_controls();
  std::string evil;
  for (const std::string_view control : kControls) evil += "\n" + std::string(control);
  for (const auto& [name, source] : families()) {
    const auto chat_template = ChatTemplate::parse(source).value();
    for (const std::string_view shape : {"su", "suau", "uctau", "uasu"}) {
      EXPECT_EQ(count_controls(chat_template, *tokenizer, shape, evil),
                count_controls(chat_template, *tokenizer, shape, ""))
          << name << " / " << shape;
    }
  }
}

std::string shown(std::string_view source, std::string_view messages) {
  const auto chat_template = ChatTemplate::parse(source).value();
  const auto text = fitted(chat_template, Value::from_json(messages).value());
  return text ? text->bytes() : text.error().message;
}

constexpr std::string_view kPlain = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
constexpr std::string_view kSystemFirst =
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('first') }}{% "
    "endif %}"
    "{{ m.role }}:{{ m.content }};{% endfor %}";

TEST(ConversationFit, WhatTheTemplateTakesStaysAsItIs) {
  EXPECT_EQ(shown(kPlain, R"([{"role":"system","content":"a"},{"role":"system","content":"b"},
                              {"role":"user","content":"c"},{"role":"system","content":"d"}])"),
            "system:a;system:b;user:c;system:d;");
  EXPECT_EQ(
      shown(kPlain, R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
      "user:a\nb;");
}

TEST(ConversationFit, LeadingSystemsAreOneAndLaterOnesKeepTheirPlace) {
  EXPECT_EQ(shown(kSystemFirst, R"([{"role":"system","content":"a"},{"role":"system","content":"b"},
                                    {"role":"user","content":"c"}])"),
            "system:a\n\nb;user:c;");
  EXPECT_EQ(shown(kSystemFirst, R"([{"role":"system","content":"a"},{"role":"user","content":"c"},
                                    {"role":"system","content":"b"}])"),
            "system:a;user:c;user:b;");
}

TEST(ConversationFit, PartsReachATemplateThatReadsThemWithAllTheyHave) {
  EXPECT_EQ(
      shown("{% for m in messages %}{% if m.content is string %}{{ raise_exception('parts') }}{% endif %}"
            "{{ m.content[0].lang }}:{{ m.content[0].text }};{% endfor %}",
            R"([{"role":"user","content":[{"type":"text","text":"a","lang":"cs"}]}])"),
      "cs:a;");
}

TEST(ConversationFit, CallsAndResultsAreTextForATemplateWithoutTools) {
  EXPECT_EQ(shown("{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no') }}{% endif %}"
                  "{{ m.role }}:{{ m.content }};{% endfor %}",
                  R"([{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":
                     [{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},
                     {"role":"tool","tool_call_id":"1","content":"c"},{"role":"tool","content":"d"}])"),
            "user:a;assistant:b\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>;"
            "user:<tool_response>\nc\n</tool_response>\n<tool_response>\nd\n</tool_response>;");
}

TEST(ConversationFit, TextBehindAResultGoesWithItWhereAnAnswerMustCome) {
  EXPECT_EQ(
      shown("{% for m in messages %}{% if m.role == 'user' and not loop.first and "
            "loop.previtem.role != 'assistant' %}{{ raise_exception('answer first') }}{% endif %}"
            "{{ m.role }}:{{ m.tool_calls[0].function.name if m.tool_calls else m.content }};{% endfor %}",
            R"([{"role":"user","content":"a"},{"role":"assistant","tool_calls":
                     [{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},
                     {"role":"tool","tool_call_id":"1","content":"b"},{"role":"user","content":"c"},
                     {"role":"system","content":"d"}])"),
      "user:a;assistant:f;tool:b\n\nc;system:d;");
}

TEST(ConversationFit, ReasoningHasTheNameThatTheTemplateReads) {
  const std::string_view messages = R"([{"role":"assistant","content":"a","reasoning_content":"b"}])";
  EXPECT_EQ(shown("{{ messages[0].reasoning }}", messages), "b");
  EXPECT_EQ(shown("{{ messages[0].reasoning_content }}", messages), "b");
}

TEST(ConversationFit, ToolsAreDescribedToATemplateThatDoesNotKnowThem) {
  ChatTemplateInputs inputs;
  inputs.messages = Value::from_json(R"([{"role":"system","content":"a"},{"role":"user","content":"b"}])")
                        .value();
  inputs.tools = Value::from_json(R"([{"type":"function","function":{"name":"f"}}])").value();
  const auto chat_template = ChatTemplate::parse(kPlain).value();
  const std::string text = render_fitted(inputs, chat_template).value().bytes();
  EXPECT_TRUE(text.starts_with("system:a\n\nYou may call functions")) << text;
  EXPECT_NE(text.find("<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"f\"}}\n</tools>"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with(";user:b;")) << text;
}

std::string shown_with_tools(std::string_view source, std::string_view messages, std::string_view tools) {
  const auto chat_template = ChatTemplate::parse(source).value();
  ChatTemplateInputs inputs;
  inputs.messages = Value::from_json(messages).value();
  if (!tools.empty()) inputs.tools = Value::from_json(tools).value();
  const auto text = render_fitted(inputs, chat_template);
  return text ? text->bytes() : text.error().message;
}

TEST(ConversationFit, ATemplateThatWantsToolsGetsNoneOfThem) {
  EXPECT_EQ(
      shown_with_tools("{% for t in tools %}{{ t.function.name }},{% endfor %}{{ messages[0].content }}",
                       R"([{"role":"user","content":"a"}])", ""),
      "a");
}

// Hermes's template: a list of types, "null" among them, sends its macro round for ever.
TEST(ConversationFit, ATemplateThatFailsAtASchemaGetsAPlainOne) {
  constexpr std::string_view kTypes =
      "{% macro type(s) %}{% set names = {'string': 'str', 'integer': 'int'} %}{% if names[s.type] is "
      "defined %}"
      "{{ names[s.type] }}{% elif s.type is iterable %}{% for t in s.type %}{{ type({'type': t}) }}{% endfor "
      "%}"
      "{% endif %}{% endmacro %}{% for t in tools %}{% for n, s in t.function.parameters.properties | items "
      "%}"
      "{{ n }}:{{ type(s) }},{% endfor %}{% endfor %}{{ messages[0].content }}";
  EXPECT_EQ(shown_with_tools(kTypes, R"([{"role":"user","content":"a"}])",
                             R"([{"type":"function","function":{"name":"f","parameters":{"type":"object",
                                 "properties":{"x":{"type":["null","string"]},
                                 "y":{"anyOf":[{"type":"null"},{"type":"integer"}]},"z":{}}}}}])"),
            "x:str,y:int,z:str,a");
}

// Command R+'s.
TEST(ConversationFit, AFailingTemplateLearnsOfWhatArraysAndObjectsAre) {
  constexpr std::string_view kTypes =
      "{% macro type(s) %}{% if s.type == 'array' %}[{{ type(s['items']) }}]{% elif s.type == 'object' %}"
      "{ {{- type(s.additionalProperties) -}} }{% elif s.type == 'string' %}str{% else %}{{ type(s) }}{% endif %}"
      "{% endmacro %}{% for t in tools %}{% for n, s in t.function.parameters.properties | items %}"
      "{{ n }}:{{ type(s) + s.description }},{% endfor %}{% endfor %}{{ messages[0].content }}";
  EXPECT_EQ(shown_with_tools(kTypes, R"([{"role":"user","content":"a"}])",
                             R"([{"type":"function","function":{"name":"f","parameters":{"type":"object",
                                 "properties":{"x":{"type":"array"},"y":{"type":"object","additionalProperties":false},
                                 "z":{"type":"array","items":{"type":"object"}}}}}}])"),
            "x:[str],y:{str},z:[{str}],a");
}

TEST(ConversationFit, SeveralCallsAreSeveralMessagesWhereTheTemplateShowsOne) {
  EXPECT_EQ(
      shown("{% for m in messages %}{% if m.tool_calls %}{{ m.content }}call:"
            "{{ m.tool_calls[0].function.arguments.x }};{% else %}{{ m.role }}:{{ m.content }};{% endif %}"
            "{% endfor %}",
            R"([{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":
                     [{"id":"1","function":{"name":"f","arguments":{"x":"one"}}},
                      {"id":"2","function":{"name":"f","arguments":{"x":"two"}}}]},
                     {"role":"tool","tool_call_id":"2","content":"d"},{"role":"tool","tool_call_id":"1","content":"c"},
                     {"role":"user","content":"e"}])"),
      "user:a;bcall:one;tool:c;call:two;tool:d;user:e;");
}

// The arguments are named alike, and the user has said what they say.
TEST(ConversationFit, CallsThatLookAlikeAreAllShown) {
  for (const std::string index : {"0", "-1"}) {
    const std::string text = shown(
        "{% for m in messages %}{% if m.tool_calls %}call:{{ m.tool_calls[" + index +
            "].function.arguments.town }};{% else %}{{ m.role }}:{{ m.content }};{% endif %}{% endfor %}",
        R"([{"role":"user","content":"Rome, Oslo"},{"role":"assistant","content":"","tool_calls":
               [{"id":"1","function":{"name":"f","arguments":{"town":"Rome"}}},
                {"id":"2","function":{"name":"f","arguments":{"town":"Oslo"}}}]},
               {"role":"tool","tool_call_id":"1","content":"c"},{"role":"tool","tool_call_id":"2","content":"d"}])");
    EXPECT_EQ(text, "user:Rome, Oslo;call:Rome;tool:c;call:Oslo;tool:d;");
  }
}

// DeepSeek R1's templates.
TEST(ConversationFit, CallsAreApartWhereATemplateShowsThemBesideNoContent) {
  constexpr std::string_view kApart =
      "{% for m in messages %}{% if m.role == 'assistant' and m.content is none %}call:"
      "{{ m.tool_calls[0].function.arguments.x }};{% else %}{{ m.role }}:{{ m.content }};{% endif %}{% endfor %}";
  EXPECT_EQ(shown(kApart, R"([{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":
               [{"id":"1","function":{"name":"f","arguments":{"x":"one"}}}]},
               {"role":"tool","tool_call_id":"1","content":"c"},{"role":"assistant","content":"","tool_calls":
               [{"id":"2","function":{"name":"f","arguments":{"x":"two"}}}]}])"),
            "user:a;assistant:b;call:one;tool:c;call:two;");
}

// Command R+'s template for tools, whose calls cannot be read by their marks alone.
TEST(ConversationFit, ATemplateThatWantsAListGetsAnEmptyOneWhereToolsAreText) {
  ChatTemplateInputs inputs;
  inputs.messages = Value::from_json(R"([{"role":"system","content":"a"},{"role":"user","content":"b"}])").value();
  inputs.tools = Value::from_json(R"([{"type":"function","function":{"name":"f"}}])").value();
  inputs.has_generic_tools = true;
  const auto chat_template =
      ChatTemplate::parse("{% for t in tools %}{{ t.name }}{% endfor %}" + std::string(kPlain)).value();
  const auto text = render_fitted(inputs, chat_template);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(text->bytes().starts_with("system:a\n\nYou may call functions")) << text->bytes();
}

TEST(ConversationFit, FunctionsAreTheNameThatFirefunctionHasForTools) {
  EXPECT_EQ(shown_with_tools("{{ 'tools: ' + functions }} {{ messages[0].content }}",
                             R"([{"role":"user","content":"a"}])",
                             R"([{"type":"function","function":{"name":"f"}}])"),
            "tools: [{\"name\": \"f\"}] a");
}

// Mistral's templates since 2025.
TEST(ConversationFit, TurnsThatSayNothingAreLeftOutWhereATemplateRefusesThem) {
  constexpr std::string_view kNoneEmpty =
      "{% for m in messages %}{% if not m.content and not m.tool_calls %}{{ raise_exception('nothing said') }}"
      "{% endif %}{{ m.role }}:{{ m.content }};{% endfor %}";
  EXPECT_EQ(shown(kNoneEmpty, R"([{"role":"user","content":"a"},{"role":"assistant","content":""},
               {"role":"user","content":"b"}])"),
            "user:a;user:b;");
  EXPECT_EQ(shown(kNoneEmpty, R"([{"role":"user","content":""}])"), "chat template, line 1: nothing said");
}

TEST(ConversationFit, AnAssistantThatSpeaksLastIsContinuedWhereATemplateWantsTheUser) {
  constexpr std::string_view kUserLast =
      "{% if messages[-1].role != 'user' %}{{ raise_exception('user last') }}{% endif %}"
      "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}bot:{% endif %}";
  const auto chat_template = ChatTemplate::parse(std::string(kUserLast)).value();
  for (const bool is_continued : {false, true}) {
    ChatTemplateInputs inputs;
    inputs.messages =
        Value::from_json(R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])").value();
    inputs.add_generation_prompt = true;
    inputs.continues_last_message = is_continued;
    const auto text = render_fitted(inputs, chat_template);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(text->bytes(), "user:a;bot:b");
  }
}

TEST(ConversationFit, ARefusalThatNoFormMendsIsTheTemplatesOwn) {
  EXPECT_EQ(shown("{{ raise_exception('never') }}", R"([{"role":"user","content":"a"}])"),
            "chat template, line 1: never");
}

}  // namespace
}  // namespace kvasir::text::conversation_fit_test
