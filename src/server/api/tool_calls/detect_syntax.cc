#include "server/api/tool_calls/detect_syntax.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "server/api/template_dict.h"
#include "server/api/tool_calls/tool_call_reader.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr std::array<std::string_view, 2> kProbeNames = {"kvprobe_one", "kvprobe_two"};
constexpr std::string_view kProbeArguments = R"({"kvtext": "a b", "kvnumber": 7})";
constexpr std::string_view kProbeText = "a b";
constexpr std::int64_t kProbeNumber = 7;
constexpr std::string_view kGenericFamily = "hermes";  // what text::conversation_fit describes

// How the made-up conversation is put; templates are particular.
struct ProbeForm {
  std::size_t num_calls;
  bool has_content;
  bool has_object_arguments;
};

Value probe_tools() {
  TemplateEntries text_type, number_type, properties, schema;
  add_member(text_type, "type", std::string("string"));
  add_member(text_type, "description", std::string("t"));
  add_member(number_type, "type", std::string("integer"));
  add_member(number_type, "description", std::string("n"));
  add_member(properties, "kvtext", Value::dict(text_type));
  add_member(properties, "kvnumber", Value::dict(number_type));
  add_member(schema, "type", std::string("object"));
  add_member(schema, "properties", Value::dict(properties));
  add_member(schema, "required", Value::list({}));
  std::vector<Value> tools;
  for (const std::string_view name : kProbeNames) {
    TemplateEntries function, tool;
    add_member(function, "name", std::string(name));
    add_member(function, "description", std::string("d"));
    add_member(function, "parameters", Value::dict(schema));
    add_member(tool, "type", std::string("function"));
    add_member(tool, "function", Value::dict(function));
    tools.push_back(Value::dict(tool));
  }
  return Value::list(tools);
}

Value probe_calls(const ProbeForm& form) {
  std::vector<Value> calls;
  for (std::size_t i = 0; i < form.num_calls; ++i) {
    TemplateEntries function, call;
    add_member(function, "name", std::string(kProbeNames[i]));
    auto arguments = Value::from_json(kProbeArguments);
    add_member(function, "arguments",
               form.has_object_arguments ? *arguments : Value::string(std::string(kProbeArguments)));
    add_member(call, "id", i == 0 ? std::string("aaaaaaaa1") : std::string("aaaaaaaa2"));
    add_member(call, "type", std::string("function"));
    add_member(call, "function", Value::dict(function));
    calls.push_back(Value::dict(call));
  }
  return Value::list(calls);
}

Value probe_user() {
  TemplateEntries user;
  add_member(user, "role", std::string("user"));
  add_member(user, "content", std::string("u"));
  return Value::dict(user);
}

class Prober {
 public:
  Prober(const text::ChatTemplate& chat_template, const text::Tokenizer* tokenizer)
      : chat_template_(chat_template) {
    inputs_.tools = probe_tools();
    if (tokenizer == nullptr) return;
    const auto text_of = [&](TokenId id) {
      return id == kNoToken ? std::string() : std::string(tokenizer->vocab().text(id));
    };
    inputs_.bos_token = text_of(tokenizer->vocab().bos());
    inputs_.eos_token = text_of(tokenizer->vocab().eos());
  }

  std::optional<std::string> render(std::vector<Value> messages, bool add_generation_prompt) {
    inputs_.messages = Value::list(std::move(messages));
    inputs_.add_generation_prompt = add_generation_prompt;
    auto rendered = chat_template_.render(text::make_globals(inputs_));
    if (!rendered) return std::nullopt;
    return std::move(*rendered);
  }

  // The template's text of a turn that was thought about, and of the beginning of one that is.
  std::string reasoning() {
    TemplateEntries assistant;
    add_member(assistant, "role", std::string("assistant"));
    add_member(assistant, "content", std::string("a"));
    add_member(assistant, "reasoning_content", std::string("t"));
    inputs_.extra.emplace_back("enable_thinking", Value::boolean(true));
    return render({probe_user(), Value::dict(assistant)}, false).value_or("") +
           render({probe_user()}, true).value_or("");
  }

  // The template's text of the calls, cut at different places where the answer may begin.
  std::vector<std::string> answers(const ProbeForm& form) {
    TemplateEntries assistant;
    add_member(assistant, "role", std::string("assistant"));
    add_member(assistant, "content", form.has_content ? Value::string("") : Value::none());
    add_member(assistant, "tool_calls", probe_calls(form));
    const auto text = render({probe_user(), Value::dict(assistant)}, false);
    if (!text) return {};
    std::vector<std::string> answers;
    for (const bool add_generation_prompt : {true, false}) {
      const auto prompt = render({probe_user()}, add_generation_prompt);
      if (!prompt) continue;
      const auto end = std::ranges::mismatch(*text, *prompt).in1;
      std::size_t begin = static_cast<std::size_t>(end - text->begin());
      answers.push_back(text->substr(begin));
      // What both have in common may reach into a mark.
      begin = text->find_last_of("<[", begin);
      if (begin != std::string::npos) answers.push_back(text->substr(begin));
    }
    return answers;
  }

 private:
  const text::ChatTemplate& chat_template_;
  text::ChatTemplateInputs inputs_;
};

bool has_probe_arguments(const std::string& arguments) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  std::string_view text;
  std::int64_t number = 0;
  return parser.parse(simdjson::padded_string(arguments)).get(json) == simdjson::SUCCESS &&
         json["kvtext"].get(text) == simdjson::SUCCESS && text == kProbeText &&
         json["kvnumber"].get(number) == simdjson::SUCCESS && number == kProbeNumber;
}

// A reader is lenient; what the template writes must be what the row says.
bool is_written_so(const ToolCallSyntax& syntax, std::string_view answer) {
  if (!answer.contains(syntax.close)) return false;
  for (const std::string_view mark : syntax.open) {
    const std::size_t begin = mark.empty() ? std::string_view::npos : answer.find(mark);
    if (begin == std::string_view::npos) continue;
    const std::string_view behind = without_blanks(answer.substr(begin + mark.size()));
    return behind.starts_with('[') == syntax.writes_list;
  }
  return syntax.may_be_bare && without_blanks(answer).starts_with('[') == syntax.writes_list;
}

bool reads_probe(const ToolCallSyntax& syntax, const std::string& answer, std::size_t num_calls) {
  ToolCallReading reading{.syntax = &syntax, .tools = {}, .hidden_marks = {}};
  for (const std::string_view name : kProbeNames) {
    reading.tools.push_back(
        {.name = std::string(name), .arguments = {{"kvtext", kStringType}, {"kvnumber", kNumberType}}});
  }
  const ReadAnswer read = read_answer(reading, answer);
  if (!read.ends_with_calls || read.calls.size() != num_calls) return false;
  for (std::size_t i = 0; i < num_calls; ++i) {
    if (read.calls[i].name != kProbeNames[i] || !has_probe_arguments(read.calls[i].arguments)) return false;
  }
  return is_written_so(syntax, answer);
}

const ToolCallSyntax* syntax_of_source(std::string_view source) {
  for (const ToolCallSyntax& syntax : tool_call_syntaxes()) {
    if (syntax.source_marks.front().empty()) continue;
    const auto is_there = [&](std::string_view mark) { return source.contains(mark); };
    if (std::ranges::all_of(syntax.source_marks, is_there)) return &syntax;
  }
  return nullptr;
}

}  // namespace

const ToolCallSyntax* detect_tool_call_syntax(const text::ChatTemplate& chat_template,
                                              const text::Tokenizer* tokenizer) {
  if (!chat_template.source().contains("tools")) return nullptr;
  Prober prober(chat_template, tokenizer);
  bool shows_calls = false;
  for (const std::size_t num_calls : {2u, 1u}) {
    for (const bool has_content : {true, false}) {
      for (const bool has_object_arguments : {true, false}) {
        const ProbeForm form{num_calls, has_content, has_object_arguments};
        for (const std::string& answer : prober.answers(form)) {
          if (!answer.contains(kProbeNames[0])) continue;
          shows_calls = true;
          for (const ToolCallSyntax& syntax : tool_call_syntaxes()) {
            if (reads_probe(syntax, answer, num_calls)) return &syntax;
          }
        }
      }
    }
  }
  return shows_calls ? nullptr : syntax_of_source(chat_template.source());
}

std::vector<ReasoningMarks> detect_reasoning_marks(const text::ChatTemplate& chat_template,
                                                   const text::Tokenizer& tokenizer) {
  std::vector<ReasoningMarks> found;
  const std::string written = Prober(chat_template, &tokenizer).reasoning();
  for (const ReasoningMarks& marks : reasoning_marks()) {
    const bool is_there = chat_template.source().contains(marks.open) || written.contains(marks.open) ||
                          tokenizer.vocab().find(marks.open) != kNoToken;
    if (is_there) found.push_back(marks);
  }
  return found;
}

ModelSyntax model_syntax(const ToolCallSyntax* syntax, const text::Tokenizer& tokenizer) {
  ModelSyntax found{
      .syntax = syntax, .mark_tokens = {}, .mark_texts = {}, .reasoning_marks = {}, .answer_marks = {}};
  if (syntax == nullptr) return found;
  std::vector<std::string_view> marks = {
      syntax->section_open, syntax->section_close, syntax->close,          syntax->before_name,
      syntax->name_mark,    syntax->call_id_mark,  syntax->arguments_mark, syntax->after_arguments,
      syntax->call_open,    syntax->call_close,    syntax->key_open,       syntax->key_close,
      syntax->value_open,   syntax->value_close,   syntax->quote};
  marks.insert(marks.end(), syntax->open.begin(), syntax->open.end());
  marks.insert(marks.end(), syntax->frame.begin(), syntax->frame.end());
  for (const ReasoningMarks& reasoning : reasoning_marks()) {
    marks.push_back(reasoning.open);
    marks.push_back(reasoning.close);
  }
  constexpr std::size_t kMinBytes = 3;
  const auto num_tokens = static_cast<TokenId>(tokenizer.vocab().num_tokens());
  for (TokenId id = 0; id < num_tokens; ++id) {
    if (!tokenizer.vocab().is_hidden(id)) continue;
    const std::string_view text = tokenizer.decode_token(id, true);
    const auto has_token = [&](std::string_view mark) { return mark.contains(text); };
    if (text.size() < kMinBytes || !std::ranges::any_of(marks, has_token)) continue;
    found.mark_tokens.push_back(id);
    found.mark_texts.emplace_back(text);
  }
  return found;
}

const ModelSyntax& ModelSyntaxes::of(const text::ChatTemplate& chat_template,
                                     const text::Tokenizer& tokenizer) {
  const std::lock_guard lock(mutex_);
  const auto known = by_source_.find(chat_template.source());
  if (known != by_source_.end()) return known->second;
  const ToolCallSyntax* syntax = detect_tool_call_syntax(chat_template, &tokenizer);
  const bool is_generic = syntax == nullptr;
  ModelSyntax found = model_syntax(is_generic ? &tool_call_syntax(kGenericFamily) : syntax, tokenizer);
  found.is_generic = is_generic;
  found.reasoning_marks = detect_reasoning_marks(chat_template, tokenizer);
  for (const ReasoningMarks& marks : answer_marks()) {
    const bool is_there = chat_template.source().contains(marks.open);
    if (is_there && !found.reasoning_marks.empty()) found.answer_marks.push_back(marks);
  }
  return by_source_.emplace(chat_template.source(), std::move(found)).first->second;
}

}  // namespace kvasir::server::api
