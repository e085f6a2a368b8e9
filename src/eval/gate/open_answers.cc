#include "eval/gate/open_answers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "grammar/tags/tool_call_syntax.h"

namespace kvasir::eval {
namespace {

constexpr std::size_t kDeclineBytes = 200;  // from the beginning of an answer
constexpr std::array<std::string_view, 18> kDeclining = {
    "i can't",       "i cannot",        "i can not",    "i'm sorry",     "i am sorry",     "i'm unable",
    "i am unable",   "i won't",         "i will not",   "i'm not able",  "i am not able",  "i must decline",
    "i apologize",   "can't help with", "not possible", "i do not have", "i don't have",   "as an ai"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return out;
}

bool is_name_byte(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || std::string_view("_-.").contains(byte);
}

std::string_view name_at(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_name_byte(text[end])) ++end;
  return text.substr(begin, end - begin);
}

// "name": "NAME" where the arguments follow it.
void add_json_names(std::string_view answer, std::vector<std::string>& names) {
  constexpr std::string_view kKey = "\"name\"";
  for (std::size_t at = answer.find(kKey); at != answer.npos; at = answer.find(kKey, at + 1)) {
    std::size_t next = answer.find_first_not_of(" \t\r\n:", at + kKey.size());
    if (next == answer.npos || answer[next] != '"') continue;
    const std::string_view rest = answer.substr(next);
    const bool has_arguments = rest.contains("\"arguments\"") || rest.contains("\"parameters\"");
    const std::size_t end = answer.find('"', next + 1);
    if (has_arguments && end != answer.npos) names.emplace_back(answer.substr(next + 1, end - next - 1));
  }
}

void add_marked_names(std::string_view answer, std::vector<std::string>& names) {
  std::set<std::string_view> marks;
  for (const grammar::ToolCallSyntax& syntax : grammar::tool_call_syntaxes()) {
    for (const std::string_view mark : {syntax.call_open, syntax.before_name}) {
      if (mark.size() > 1) marks.insert(mark);
    }
  }
  for (const std::string_view mark : marks) {
    for (std::size_t at = answer.find(mark); at != answer.npos; at = answer.find(mark, at + 1)) {
      const std::string_view name = name_at(answer, at + mark.size());
      if (!name.empty()) names.emplace_back(name);
    }
  }
}

// name(key= at the beginning, perhaps in a list.
void add_pythonic_name(std::string_view answer, std::vector<std::string>& names) {
  const std::size_t begin = answer.find_first_not_of(" \t\r\n[`");
  if (begin == answer.npos) return;
  const std::string_view name = name_at(answer, begin);
  const std::size_t open = begin + name.size();
  if (name.empty() || open >= answer.size() || answer[open] != '(') return;
  const std::string_view key = name_at(answer, open + 1);
  const std::size_t behind = open + 1 + key.size();
  if (behind < answer.size() && (answer[behind] == '=' || (key.empty() && answer[behind] == ')'))) names.emplace_back(name);
}

}  // namespace

bool declines(std::string_view answer) {
  std::string begin = lower(answer.substr(0, kDeclineBytes));
  for (std::size_t at = begin.find("\xE2\x80\x99"); at != begin.npos; at = begin.find("\xE2\x80\x99")) {
    begin.replace(at, 3, "'");
  }
  return std::ranges::any_of(kDeclining, [&](std::string_view words) { return begin.contains(words); });
}

std::vector<std::string> called_names(std::string_view answer) {
  std::vector<std::string> names;
  add_json_names(answer, names);
  add_marked_names(answer, names);
  if (names.empty()) add_pythonic_name(answer, names);
  return names;
}

Result<OpenCount> count_open_answers(const GateArms& arms, std::span<const OpenQuestion> questions,
                                     const std::function<Result<std::string>(std::span<const TokenId>)>& decode,
                                     const SaysYes& says, std::string_view name, const GateProgress& progress) {
  OpenCount count;
  for (const OpenQuestion& question : questions) {
    progress(name, static_cast<double>(count.num_asked) / static_cast<double>(questions.size()));
    ++count.num_asked;
    std::array<bool, 2> said{};
    for (std::size_t i = 0; i < said.size(); ++i) {
      GateArm& arm = i == 0 ? arms.reference : arms.changed;
      KVASIR_TRY(const ArmAnswer answer,
                 answer_or_none(arm, {.prompt = question.prompt, .max_tokens = question.max_tokens}));
      KVASIR_TRY(const std::string text, decode(answer.token_ids));
      said[i] = says(question, text);
    }
    count.num_reference += said[0] ? 1 : 0;
    count.num_changed += said[1] ? 1 : 0;
    count.num_both += said[0] && said[1] ? 1 : 0;
  }
  return count;
}

}  // namespace kvasir::eval
