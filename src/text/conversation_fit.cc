#include "text/conversation_fit.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "text/conversation_form.h"
#include "text/generic_tools.h"
#include "text/plain_schema.h"

namespace kvasir::text {
namespace {

using jinja::TracedText;
using jinja::Value;
using Form = ConversationForm;

// Trials cost what the conversation is long: a short one may have them all.
constexpr std::size_t kMaxTrials = 96, kMinTrials = 24;
constexpr std::size_t kMaxTriedBytes = std::size_t{16} << 20;

bool has_member_anywhere(const Value& messages, std::string_view name) {
  return std::ranges::any_of(messages.as_list().items, [&](const Value& message) {
    return find_message_member(message, name) != nullptr;
  });
}

bool has_role(const Value& messages, std::string_view role) {
  return std::ranges::any_of(messages.as_list().items,
                             [&](const Value& message) { return role_of(message) == role; });
}

// The longest run of plain characters, which no template writes otherwise: what tells that a text is shown.
std::string telling_run(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == ' ' || c == '.' || c == ',';
  };
  std::string_view best;
  for (std::size_t i = 0; i < text.size() && best.size() < kLongest; ++i) {
    std::size_t end = i;
    while (end < text.size() && is_plain(text[end])) ++end;
    std::string_view run = text.substr(i, end - i);
    while (run.starts_with(' ')) run.remove_prefix(1);
    while (run.ends_with(' ')) run.remove_suffix(1);
    if (run.size() > best.size()) best = run;
    i = end;
  }
  return std::string(best.substr(0, kLongest));
}

const std::vector<Value>* several_calls_of(const Value& message) {
  const Value* calls = find_message_member(message, "tool_calls");
  const bool are_several = calls != nullptr && calls->is_list() && calls->as_list().items.size() > 1;
  return are_several ? &calls->as_list().items : nullptr;
}

enum class Calls : std::uint8_t { kNone, kFirst, kLast };

// The messages with so much of each one's calls.
Value with_calls(const Value& messages, Calls wanted) {
  std::vector<Value> changed;
  for (const Value& message : messages.as_list().items) {
    const Value* calls = find_message_member(message, "tool_calls");
    if (calls == nullptr || !calls->is_list() || calls->as_list().items.empty()) {
      changed.push_back(message);
      continue;
    }
    std::vector<Value> left;
    if (wanted == Calls::kFirst) left = {calls->as_list().items.front()};
    if (wanted == Calls::kLast) left = {calls->as_list().items.back()};
    changed.push_back(with_member(message, "tool_calls", Value::list(std::move(left))));
  }
  return Value::list(std::move(changed));
}

// Up to the first message with calls of which `is_meant` is true, and their results; nothing: there is none.
template <class IsMeant>
std::optional<Value> beginning_with_calls(const Value& messages, IsMeant is_meant) {
  const std::vector<Value>& items = messages.as_list().items;
  const auto meant = std::ranges::find_if(items, [&](const Value& message) {
    return find_message_member(message, "tool_calls") != nullptr && is_meant(message);
  });
  if (meant == items.end()) return std::nullopt;
  const auto end = std::find_if(meant + 1, items.end(), [](const Value& message) { return role_of(message) != "tool"; });
  return Value::list(std::vector<Value>(items.begin(), end));
}

bool says_something(const Value& message) {
  const Value* content = find_message_member(message, "content");
  return content != nullptr && !content_text(*content).empty();
}

// Tells two forms of one conversation apart.
std::string outline_of(const Value& messages) {
  std::string outline;
  for (const Value& message : messages.as_list().items) {
    const Value* content = find_message_member(message, "content");
    const bool is_list = content != nullptr && content->is_list();
    outline += role_of(message) + (is_list ? '[' : '"');
    if (content != nullptr) outline += std::to_string(content_text(*content).size());
    outline += find_message_member(message, "tool_calls") == nullptr ? ';' : '+';
  }
  return outline;
}

// What an assistant thought, by the name that the template reads.
Value with_reasoning_named(const Value& messages, std::string_view source) {
  if (source.contains("reasoning_content") || !source.contains("reasoning")) return messages;
  std::vector<Value> changed;
  for (const Value& message : messages.as_list().items) {
    const Value* reasoning = find_message_member(message, "reasoning_content");
    changed.push_back(reasoning == nullptr ? message : with_member(message, "reasoning", *reasoning));
  }
  return Value::list(std::move(changed));
}

class Fitting {
 public:
  // `no_tools` is what the template gets where tools are text.
  Fitting(const ChatTemplateInputs& inputs, const ChatTemplate& chat_template, Value no_tools = Value::none())
      : inputs_(inputs), template_(chat_template), source_(chat_template.source()) {
    inputs_.messages = with_reasoning_named(inputs.messages, source_);
    is_generic_ = inputs.has_generic_tools || (!inputs.tools.is_none() && !source_.contains("tools"));
    has_calls_ = has_member_anywhere(inputs.messages, "tool_calls");
    has_several_calls_ = std::ranges::any_of(inputs.messages.as_list().items, [](const Value& message) {
      return several_calls_of(message) != nullptr;
    });
    if (is_generic_ && !inputs.tools.is_none()) tools_text_ = tools_as_text(inputs.tools);
    globals_ = inputs;
    globals_.tools = is_generic_ ? std::move(no_tools) : as_foreign(inputs.tools);
    globals_.documents = as_foreign(inputs.documents);
    for (auto& [name, value] : globals_.extra) value = as_foreign(value);
    for (const Value& message : inputs.messages.as_list().items) {
      const Value* content = find_message_member(message, "content");
      if (content == nullptr || role_of(message) == "assistant") continue;
      std::string run = telling_run(content_text(*content));
      if (!run.empty()) telling_.push_back(std::move(run));
    }
    if (!tools_text_.empty()) telling_.push_back(telling_run(tools_text_));
  }

  Result<TracedText> run() {
    for (const Form& form : forms()) {
      if (num_trials_ >= (tried_bytes_ < kMaxTriedBytes ? kMaxTrials : kMinTrials)) break;
      if (auto shown = attempt(form)) return std::move(*shown);
      if (is_over_) break;
    }
    if (first_rendered_) return std::move(*first_rendered_);
    return std::unexpected(std::move(*first_error_));
  }

 private:
  // In the order in which they are tried.
  std::vector<Form> forms() const {
    std::vector<Form> all;
    for (const Form::Tools tools : tool_forms()) {
      for (const bool has_text_arguments : {false, true}) {
        if (has_text_arguments && (!has_calls_ || tools >= Form::Tools::kCallsAsText)) continue;
        for (const bool starts_with_user : {false, true}) {
          for (const bool merges_roles : {false, true}) {
            for (int system = 0; system <= static_cast<int>(Form::System::kInUser); ++system) {
              for (const Form::Contents contents : content_forms()) {
                all.push_back({.system = static_cast<Form::System>(system),
                               .contents = contents,
                               .tools = tools,
                               .has_text_arguments = has_text_arguments,
                               .merges_roles = merges_roles,
                               .starts_with_user = starts_with_user});
              }
            }
          }
        }
      }
    }
    return all;
  }

  std::vector<Form::Tools> tool_forms() const {
    if (is_generic_) return {Form::Tools::kAllAsText};
    std::vector<Form::Tools> all = {Form::Tools::kAsCame};
    const bool has_results = has_role(inputs_.messages, "tool");
    if (has_results) all.push_back(Form::Tools::kTextInResults);
    if (has_several_calls_) all.push_back(Form::Tools::kOneCallEach);
    if (has_calls_) all.push_back(Form::Tools::kCallsApart);
    if (has_calls_) all.push_back(Form::Tools::kCallsAsText);
    if (has_calls_ || has_results) all.push_back(Form::Tools::kAllAsText);
    return all;
  }

  std::vector<Form::Contents> content_forms() const {
    std::vector<Form::Contents> all = {Form::Contents::kText};
    const bool reads_parts = source_.contains(".text") || source_.contains("'text'") ||
                             source_.contains("\"text\"") || source_.contains("content[");
    if (inputs_.keeps_parts) {
      all.insert(all.begin(), Form::Contents::kAsCame);
    } else if (reads_parts) {
      all.push_back(Form::Contents::kAsCame);
    }
    if (reads_parts) all.push_back(Form::Contents::kParts);
    return all;
  }

  // The rendered form, if the template shows all of it.
  std::optional<TracedText> attempt(const Form& form) {
    const Value messages = in_form(inputs_.messages, form, tools_text_);
    if (!tried_.insert(outline_of(messages) + (form.has_text_arguments ? "t" : "o")).second) return {};
    ++num_trials_;
    for (const Value& message : messages.as_list().items) {
      if (const Value* content = find_message_member(message, "content")) {
        tried_bytes_ += content_text(*content).size();
      }
    }
    globals_.messages = as_foreign(messages);
    auto rendered = template_.render_traced(make_globals(globals_));
    if (!rendered) {
      is_over_ = rendered.error().kind == ErrorKind::kUnmet;  // more work would only meet it again
      if (!first_error_) first_error_ = std::move(rendered).error();
      return {};
    }
    const bool is_whole = shows_all(form, rendered->bytes()) && shows_calls(form, messages);
    const bool shows_parts_raw = form.contents != Form::Contents::kText && !inputs_.keeps_parts &&
                                 (rendered->bytes().contains("'type': 'text'") ||
                                  rendered->bytes().contains("\"type\": \"text\""));
    if (is_whole && !shows_parts_raw) return std::move(*rendered);
    if (!first_rendered_) first_rendered_ = std::move(*rendered);
    return {};
  }

  // Some templates show no calls beside a content, or only one of several: without them their text is the same. The
  // beginning of the conversation tells.
  bool shows_calls(const Form& form, const Value& messages) {
    if (!has_calls_ || form.tools >= Form::Tools::kCallsAsText) return true;
    const auto several = beginning_with_calls(messages, [](const Value& m) { return several_calls_of(m) != nullptr; });
    if (several && (is_same_with(*several, Calls::kFirst) || is_same_with(*several, Calls::kLast))) return false;
    auto any = beginning_with_calls(messages, says_something);
    if (!any) any = beginning_with_calls(messages, [](const Value&) { return true; });
    return !any || !is_same_with(*any, Calls::kNone);
  }

  bool is_same_with(const Value& messages, Calls wanted) {
    const auto whole = trial_of(messages), other = trial_of(with_calls(messages, wanted));
    return whole && other && *whole == *other;
  }

  std::optional<std::string> trial_of(const Value& messages) {
    ++num_trials_;
    ChatTemplateInputs inputs = globals_;
    inputs.messages = as_foreign(messages);
    auto rendered = template_.render_traced(make_globals(inputs));
    if (!rendered) return std::nullopt;
    return rendered->bytes();
  }

  bool shows_all(const Form& form, const std::string& rendered) const {
    const bool hides_calls = has_calls_ && form.tools < Form::Tools::kCallsAsText &&
                             !source_.contains("tool_calls");
    return !hides_calls &&
           std::ranges::all_of(telling_, [&](const std::string& run) { return rendered.contains(run); });
  }

  ChatTemplateInputs inputs_;
  const ChatTemplate& template_;
  const std::string_view source_;
  bool is_generic_ = false;
  bool has_calls_ = false, has_several_calls_ = false;
  std::string tools_text_;
  ChatTemplateInputs globals_;
  std::vector<std::string> telling_;  // of what must be shown
  std::set<std::string> tried_;
  std::size_t num_trials_ = 0;
  std::size_t tried_bytes_ = 0;
  bool is_over_ = false;
  std::optional<TracedText> first_rendered_;
  std::optional<Error> first_error_;
};

// Firefunction's name for the tools, and what it wants to know of today.
void add_functions(ChatTemplateInputs& inputs) {
  std::vector<Value> functions;
  if (inputs.tools.is_list()) {
    for (const Value& tool : inputs.tools.as_list().items) {
      const Value* function = find_message_member(tool, "function");
      functions.push_back(function == nullptr ? tool : *function);
    }
  }
  inputs.extra.emplace_back("functions", Value::string(value_as_json(Value::list(std::move(functions)))));
  inputs.extra.emplace_back("datetime",
                            Value::string(fmt::format("{:%b %d %Y}", fmt::localtime(std::time(nullptr)))));
}

// The conversation without turns that say and call nothing, for templates that refuse them. The last one stays.
Value without_empty_turns(const Value& messages) {
  const std::vector<Value>& items = messages.as_list().items;
  std::vector<Value> kept;
  for (const Value& message : items) {
    const bool is_empty = !says_something(message) && find_message_member(message, "tool_calls") == nullptr;
    const bool is_result = role_of(message) == "tool";
    if (!is_empty || is_result || &message == &items.back()) kept.push_back(message);
  }
  return Value::list(std::move(kept));
}

// As the template takes it: if it takes nothing, tools are given to it in other ways, or empty turns are left out.
Result<TracedText> fit(const ChatTemplateInputs& inputs, const ChatTemplate& chat_template) {
  auto prompt = Fitting(inputs, chat_template).run();
  if (prompt) return prompt;
  std::vector<ChatTemplateInputs> others;
  if (prompt.error().message.contains("'functions' is undefined")) {
    add_functions(others.emplace_back(inputs));
  } else if (inputs.tools.is_none() && chat_template.source().contains("tools")) {
    others.emplace_back(inputs).tools = Value::list({});
  } else if (!inputs.tools.is_none()) {
    others.emplace_back(inputs).tools = with_plain_schemas(inputs.tools);
  }
  Value shorter = without_empty_turns(inputs.messages);
  if (shorter.as_list().items.size() < inputs.messages.as_list().items.size()) {
    others.emplace_back(inputs).messages = std::move(shorter);
  }
  for (const ChatTemplateInputs& other : others) {
    if (auto rendered = Fitting(other, chat_template).run()) return rendered;
  }
  if (auto rendered = Fitting(inputs, chat_template, Value::list({})).run()) return rendered;
  return prompt;
}

// Private-use characters that the conversation does not have are looked for among these.
std::string end_mark(int number) { return "\xEF\xA3" + std::string(1, static_cast<char>(0x80 + number)); }
constexpr int kNumEndMarks = 64;

Value with_last(const Value& messages, Value last) {
  std::vector<Value> items = messages.as_list().items;
  items.back() = std::move(last);
  return Value::list(std::move(items));
}

// The prompt ends within the last message, whose end a mark shows.
Result<TracedText> render_continued(const ChatTemplateInputs& inputs, const ChatTemplate& chat_template) {
  const Value& last = inputs.messages.as_list().items.back();
  const Value* content = find_message_member(last, "content");
  const std::string text = content == nullptr ? std::string() : content_text(*content);
  const std::string all = value_as_json(inputs.messages);
  int number = 0;
  while (number + 1 < kNumEndMarks && all.contains(end_mark(number))) ++number;
  const std::string mark = end_mark(number);
  ChatTemplateInputs marked = inputs;
  marked.add_generation_prompt = false;
  marked.messages = with_last(inputs.messages, with_member(last, "content", Value::string(text + mark)));
  auto shown = fit(marked, chat_template);
  if (const std::size_t end = shown ? shown->bytes().rfind(mark) : std::string::npos; end != std::string::npos) {
    shown->cut(end);
    return std::move(*shown);
  }
  // The template does not show it, or not as the last one: its text goes where an answer would begin.
  ChatTemplateInputs before = inputs;
  std::vector<Value> items = inputs.messages.as_list().items;
  items.pop_back();
  if (items.empty())
    items.push_back(
        with_member(with_member(last, "role", Value::string("user")), "content", Value::string("")));
  before.messages = Value::list(std::move(items));
  before.add_generation_prompt = true;
  KVASIR_TRY(TracedText prompt, fit(before, chat_template));
  prompt.append_foreign(text);
  return prompt;
}

}  // namespace

Result<TracedText> render_fitted(const ChatTemplateInputs& inputs, const ChatTemplate& chat_template) {
  if (inputs.messages.as_list().items.empty()) return fit(inputs, chat_template);
  const Value& last = inputs.messages.as_list().items.back();
  const bool has_calls = find_message_member(last, "tool_calls") != nullptr;
  if (inputs.continues_last_message && !has_calls) return render_continued(inputs, chat_template);
  auto prompt = fit(inputs, chat_template);
  // Some templates want a user's turn, or a result, before the answer.
  const bool may_continue = role_of(last) == "assistant" && !has_calls && inputs.add_generation_prompt;
  if (prompt || !may_continue) return prompt;
  auto continued = render_continued(inputs, chat_template);
  return continued ? std::move(continued) : std::move(prompt);
}

}  // namespace kvasir::text
