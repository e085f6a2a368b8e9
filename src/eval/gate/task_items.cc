#include "eval/gate/task_items.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace kvasir::eval {
namespace {

constexpr std::size_t kTasksPerText = 8;
constexpr std::array kColours = {"red", "blue", "green", "black", "white", "brown", "yellow", "grey"};
constexpr std::array kBoxes = {"box", "bag", "chest", "jar", "basket", "drawer"};
constexpr std::array kRooms = {"kitchen", "cellar", "attic", "garden", "garage", "hall", "library", "workshop"};

std::string without_notes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = std::min(text.find("<<"), text.size());
    out += text.substr(0, open);
    text.remove_prefix(open);
    const std::size_t close = text.find(">>");
    if (close == text.npos) break;
    text.remove_prefix(close + 2);
  }
  return out + std::string(text);
}

Result<SolvedTask> parse_solved_task(simdjson::dom::parser& parser, std::string_view line, std::size_t number) {
  const auto bad = [&](std::string_view what) {
    return make_error(ErrorKind::kBadFile, fmt::format("tasks: line {}: {}", number, what), "tasks");
  };
  simdjson::dom::element element;
  if (parser.parse(line.data(), line.size()).get(element) != simdjson::SUCCESS) return bad("is no JSON");
  std::string_view question, answer;
  if (element["question"].get_string().get(question) != simdjson::SUCCESS &&
      element["prompt"].get_string().get(question) != simdjson::SUCCESS) {
    return bad("has no text \"question\" or \"prompt\"");
  }
  if (element["answer"].get_string().get(answer) != simdjson::SUCCESS) return bad("has no text \"answer\"");
  return SolvedTask{.question = std::string(question), .solution = without_notes(answer)};
}

struct Fact {
  std::string place;  // "red box in the cellar"
  int number = 0;
};

std::vector<Fact> draw_facts(std::int32_t num_facts, std::uint64_t seed) {
  std::vector<std::string> places;
  for (const char* colour : kColours) {
    for (const char* box : kBoxes) {
      for (const char* room : kRooms) places.push_back(fmt::format("{} {} in the {}", colour, box, room));
    }
  }
  std::mt19937_64 random(seed);
  std::vector<Fact> facts;
  while (std::ssize(facts) < num_facts && !places.empty()) {
    std::swap(places[random() % places.size()], places.back());
    facts.push_back({.place = std::move(places.back()), .number = 10 + static_cast<int>(random() % 90)});
    places.pop_back();
  }
  return facts;
}

}  // namespace

Result<std::vector<SolvedTask>> parse_solved_tasks(std::string_view lines, std::size_t max_tasks) {
  simdjson::dom::parser parser;
  std::vector<SolvedTask> tasks;
  std::size_t number = 0;
  while (!lines.empty() && tasks.size() < max_tasks) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (line.find_first_not_of(" \r\t") == line.npos) continue;
    KVASIR_TRY(SolvedTask task, parse_solved_task(parser, line, number));
    tasks.push_back(std::move(task));
  }
  if (tasks.empty()) return make_error(ErrorKind::kBadFile, "tasks: the file has none", "tasks");
  return tasks;
}

std::vector<ScoredText> solution_texts(const EncodeText& encode, TokenId bos, std::span<const SolvedTask> tasks,
                                       std::int32_t max_tokens, std::int32_t first_position) {
  std::vector<ScoredText> texts;
  std::size_t num_in_text = 0;
  ScoredText text;
  const auto end_text = [&] {
    if (!text.positions.empty()) texts.push_back(std::move(text));
    text = {};
    num_in_text = 0;
  };
  for (const SolvedTask& task : tasks) {
    const std::vector<TokenId> question = encode(fmt::format("Question: {}\nAnswer:", task.question));
    const std::vector<TokenId> solution = encode(fmt::format(" {}\n\n", task.solution));
    const std::size_t more = question.size() + solution.size() + 1;
    if (num_in_text == kTasksPerText || text.tokens.size() + more > static_cast<std::size_t>(max_tokens)) end_text();
    if (more > static_cast<std::size_t>(max_tokens)) continue;
    if (text.tokens.empty() && bos != kNoToken) text.tokens.push_back(bos);
    text.tokens.insert(text.tokens.end(), question.begin(), question.end());
    const auto begin = static_cast<std::int32_t>(text.tokens.size());
    text.tokens.insert(text.tokens.end(), solution.begin(), solution.end());
    for (auto position = std::max(begin - 1, first_position); position + 1 < std::ssize(text.tokens); ++position) {
      text.positions.push_back(position);
    }
    ++num_in_text;
    text.num_tasks += text.positions.empty() ? 0 : 1;
  }
  end_text();
  return texts;
}

std::vector<ExactQuestion> distractor_questions(const EncodeText& encode, const ChatFrame& frame,
                                                std::int32_t num_questions, std::int32_t num_facts,
                                                std::int32_t max_tokens) {
  std::vector<ExactQuestion> questions;
  for (std::int32_t n = 0; n < num_questions; ++n) {
    const std::vector<Fact> facts = draw_facts(num_facts, static_cast<std::uint64_t>(n) + 1);
    // Facts at all depths are asked for.
    const Fact& asked = facts[(static_cast<std::size_t>(n) * 7) % facts.size()];
    std::string text = "Remember how many coins there are.\n\n";
    for (const Fact& fact : facts) text += fmt::format("The {} holds {} coins.\n", fact.place, fact.number);
    text += fmt::format("\nQuestion: How many coins does the {} hold?", asked.place);
    ExactQuestion question{.prompt = frame.before, .answer = encode(fmt::format(" {}", asked.number))};
    const auto append = [&](const std::vector<TokenId>& more) {
      question.prompt.insert(question.prompt.end(), more.begin(), more.end());
    };
    append(encode(text));
    append(frame.after);
    append(encode(fmt::format("The {} holds", asked.place)));
    if (question.prompt.size() + question.answer.size() <= static_cast<std::size_t>(max_tokens)) {
      questions.push_back(std::move(question));
    }
  }
  return questions;
}

}  // namespace kvasir::eval
