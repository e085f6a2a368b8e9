#include "server/api/tool_calls/detect_syntax.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvasir::server::detect_syntax_test {
namespace {

std::string_view family_of(const std::string& source) {
  const auto parsed = text::ChatTemplate::parse(source);
  EXPECT_TRUE(parsed) << source;
  if (!parsed) return {};
  const api::ToolCallSyntax* syntax = api::detect_tool_call_syntax(*parsed, nullptr);
  return syntax == nullptr ? "none" : syntax->family;
}

// Of a template that writes calls as `call` says, in the style of ChatML.
std::string_view family_of_call(const std::string& call,
                                const std::string& head = "<|im_start|>assistant\n") {
  return family_of(
      "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{% if m.tool_calls %}" + head +
      "{{ m.content or '' }}" + call +
      "<|im_end|>\n{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}" +
      head + "{% endif %}");
}

std::string each(const std::string& call) {
  return "{% for c in m.tool_calls %}{% set f = c.function %}" + call + "{% endfor %}";
}

TEST(DetectSyntax, ReadsWhatTheTemplateMakesOfCalls) {
  const std::string json = R"({"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}})";
  EXPECT_EQ(family_of_call(each("<tool_call>\n" + json + "\n</tool_call>\n")), "hermes");
  EXPECT_EQ(
      family_of_call("<tool_call>[" + each(json + "{% if not loop.last %}, {% endif %}") + "]</tool_call>"),
      "smollm2");
  EXPECT_EQ(
      family_of_call(each("\n<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments | items %}"
                          "<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n"
                          "{% endfor %}</function>\n</tool_call>")),
      "qwen3-coder");
  EXPECT_EQ(
      family_of_call(each("<seed:tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments | items %}"
                          "<parameter={{ k }}>{{ v }}</parameter>\n{% endfor %}</function>\n"
                          "</seed:tool_call>")),
      "seed-oss");
  EXPECT_EQ(
      family_of_call(each("\n<tool_call>{{ f.name }}\n{% for k, v in f.arguments | items %}<arg_key>{{ k }}"
                          "</arg_key>\n<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>")),
      "glm-4.5");
  EXPECT_EQ(family_of_call("[TOOL_CALLS] [" + each(json + "{% if not loop.last %}, {% endif %}") + "]"),
            "mistral");
  EXPECT_EQ(
      family_of_call(each("[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ c.id }}[ARGS]{{ f.arguments | tojson }}")),
      "mistral-args");
  EXPECT_EQ(family_of_call(
                each("<start_function_call>call:{{ f.name }}{% raw %}{{% endraw %}{% for k, v in "
                     "f.arguments | items %}{{ k }}:{% if v is string %}<escape>{{ v }}<escape>{% else %}"
                     "{{ v }}{% endif %}{% if not loop.last %},{% endif %}{% endfor %}}"
                     "<end_function_call>")),
            "functiongemma");
  EXPECT_EQ(family_of_call(each(" to=functions.{{ f.name }}<|channel|>commentary json<|message|>"
                                "{{ f.arguments | tojson }}<|call|>"),
                           "<|start|>assistant"),
            "gpt-oss");
  EXPECT_EQ(family_of_call("<｜tool▁calls▁begin｜>" +
                           each("<｜tool▁call▁begin｜>{{ f.name }}<｜tool▁sep｜>{{ f.arguments | tojson }}"
                                "<｜tool▁call▁end｜>") +
                           "<｜tool▁calls▁end｜>"),
            "deepseek-v3.1");
  EXPECT_EQ(family_of_call("<|tool_calls_section_begin|>" +
                           each("<|tool_call_begin|>functions.{{ f.name }}:{{ loop.index0 }}"
                                "<|tool_call_argument_begin|>{{ f.arguments | tojson }}<|tool_call_end|>") +
                           "<|tool_calls_section_end|>"),
            "kimi-k2");
  EXPECT_EQ(family_of_call(each("<function={{ f.name }}>{{ f.arguments | tojson }}</function>")),
            "functionary-3.1");
  EXPECT_EQ(family_of_call(each("<longcat_tool_call>\n" + json + "\n</longcat_tool_call>\n")), "longcat");
  EXPECT_EQ(family_of_call(each("<function_call> " + json + "\n")), "granite-20b");
  EXPECT_EQ(family_of_call("<｜tool_calls_begin｜>" +
                           each("<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"{{ f.name }}\">"
                                "{% for k, v in f.arguments | items %}<steptml:parameter name=\"{{ k }}\">{{ v }}"
                                "</steptml:parameter>{% endfor %}</steptml:invoke><｜tool_call_end｜>") +
                           "<｜tool_calls_end｜>"),
            "step-3");
  EXPECT_EQ(family_of_call("<|tool_call|>[" + each(json + "{% if not loop.last %}, {% endif %}") + "]"),
            "granite-3");
  EXPECT_EQ(family_of_call(each("{\"name\": \"{{ f.name }}\", \"parameters\": {{ f.arguments | tojson }}}"
                                "{% if not loop.last %}; {% endif %}")),
            "llama-3");
}

TEST(DetectSyntax, ReadsTheFormsOfTodaysTemplates) {
  const std::string json = R"({"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}})";
  const std::string dsml = each(
      "<｜DSML｜invoke name=\"{{ f.name }}\">\n{% for k, v in f.arguments | items %}<｜DSML｜parameter "
      "name=\"{{ k }}\" string=\"{{ 'true' if v is string else 'false' }}\">{{ v }}</｜DSML｜parameter>\n"
      "{% endfor %}</｜DSML｜invoke>\n");
  EXPECT_EQ(family_of_call("\n\n<｜DSML｜function_calls>\n" + dsml + "</｜DSML｜function_calls>"),
            "deepseek-v3.2");
  EXPECT_EQ(family_of_call("\n\n<｜DSML｜tool_calls>\n" + dsml + "</｜DSML｜tool_calls>"), "deepseek-v4");
  EXPECT_EQ(family_of_call(each("<function name=\"{{ f.name }}\">{% for k, v in f.arguments | items %}<param "
                                "name=\"{{ k }}\">{{ v }}</param>{% endfor %}</function>\n")),
            "minicpm5");
  EXPECT_EQ(
      family_of_call("<|tool_calls|>" +
                     each("<|tool_call:begin|>{{ c.id }}<|tool_call:name|>{{ f.name }}<|tool_call:args|>"
                          "{{ f.arguments | tojson }}<|tool_call:end|>") +
                     "<|calls|>"),
      "solar-open");
  EXPECT_EQ(
      family_of_call("<|tools_prefix|>[" +
                     each("{\"{{ f.name }}\": {{ f.arguments | tojson }}}{{ '' if loop.last else ', ' }}") +
                     "]<|tools_suffix|>"),
      "apertus");
  EXPECT_EQ(
      family_of_call("<|function_call|>{% set f = m.tool_calls[0].function %}" + json + "<|message_sep|>"),
      "gigachat-3");
  EXPECT_EQ(family_of_call("<tool_calls>\n" + each(json + "\n") + "</tool_calls>"), "minimax-m1");
  EXPECT_EQ(family_of_call(each(">>>{{ f.name }}\n{{ f.arguments | tojson }}"),
                           "<|start_header_id|>assistant<|end_header_id|>\n\n>>>"),
            "functionary-3.2");
  EXPECT_EQ(family_of("{% if tools %}List of tools: <|im_start|>{% endif %}"), "lfm2.5");
  const std::string action = R"({"tool_name": "{{ f.name }}", "parameters": {{ f.arguments | tojson(indent=4) }}})";
  EXPECT_EQ(family_of_call("\nAction:\n```json\n[\n" + each(action + "{% if not loop.last %},\n{% endif %}") + "\n]```\n"),
            "command-r");
  const std::string ns = "]<]minimax[>[";
  EXPECT_EQ(family_of_call(ns + "<tool_call>\n" +
                           each(ns + "<invoke name=\"{{ f.name }}\">{% for k, v in f.arguments | items %}" + ns +
                                "<{{ k }}>{{ v }}" + ns + "</{{ k }}>{% endfor %}" + ns + "</invoke>\n") +
                           ns + "</tool_call>"),
            "minimax-m3");
}

TEST(DetectSyntax, ReadsCallsWithoutAMark) {
  EXPECT_EQ(family_of_call(each("<|assistant|>{{ f.name }}\n{{ f.arguments | tojson }}"), ""), "glm-4");
}

TEST(DetectSyntax, KnowsTemplatesWithoutCallsByTheirSource) {
  EXPECT_EQ(family_of("{{ messages }}"), "none");
  EXPECT_EQ(family_of("{% if tools %}<tool_call>{% endif %}"), "hermes");
  EXPECT_EQ(family_of("{% if tools %}<tool_call>\n<function=name>{% endif %}"), "qwen3-coder");
  EXPECT_EQ(family_of("{% if tools %}{\"name\": f, \"parameters\": d}{% endif %}"), "llama-3");
  EXPECT_EQ(family_of("{% if tools %}[TOOL_CALLS] {% endif %}"), "mistral");
  EXPECT_EQ(family_of("{% if tools %}<|tool_list_start|>{% endif %}"), "lfm2");
  EXPECT_EQ(family_of("{% if tools %}[TOOLS]{% endif %}"), "none");
}

TEST(DetectSyntax, GuessesNothingThatItCannotRead) {
  EXPECT_EQ(family_of_call(each("<tool_call>{{ f.name }}: {{ f.arguments | tojson }}</tool_call>")), "none");
  EXPECT_EQ(family_of_call(each("CALL {{ f.name }} WITH {{ f.arguments | tojson }} \"parameters\"")), "none");
}

// Three of them show calls or tools, but not both.
TEST(DetectSyntax, KnowsTheTemplatesOfFamilies) {
  for (const auto& [name, family] :
       std::vector<std::pair<std::string, std::string>>{{"chatml", "none"},
                                                        {"command_r", "none"},
                                                        {"deepseek_r1", "none"},
                                                        {"gemma3", "none"},
                                                        {"granite", "none"},
                                                        {"hermes", "hermes"},
                                                        {"llama2", "none"},
                                                        {"llama3", "llama-3"},
                                                        {"mistral_v3", "mistral"},
                                                        {"phi3", "none"},
                                                        {"qwen25", "hermes"},
                                                        {"qwen3", "hermes"},
                                                        {"zephyr", "none"}}) {
    std::ifstream file(KVASIR_SOURCE_DIR "/tests/cases/template/families/" + name + ".jinja");
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(family_of(source), family) << name;
  }
}

}  // namespace
}  // namespace kvasir::server::detect_syntax_test
