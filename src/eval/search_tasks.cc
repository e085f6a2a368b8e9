#include "eval/search_tasks.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <chrono>
#include <utility>

#include "eval/wilson.h"
#include "text/regex/search.h"

namespace kvasir::eval {
namespace {

constexpr std::uint64_t kSeedsPerTask = 1000;  // more than a method takes

Result<SearchTask> parse_task(simdjson::dom::parser& parser, std::string_view line, std::size_t number) {
  const auto bad = [&](std::string_view what) { return make_error(ErrorKind::kBadFile, fmt::format("tasks: line {}: {}", number, what), "tasks"); };
  simdjson::dom::element element;
  SearchTask task;
  std::string_view prompt, answer, check;
  if (parser.parse(line.data(), line.size()).get(element) != simdjson::SUCCESS) return bad("is no JSON");
  if (element["prompt"].get_string().get(prompt) != simdjson::SUCCESS) return bad("has no text \"prompt\"");
  if (element["answer"].get_string().get(answer) != simdjson::SUCCESS) return bad("has no text \"answer\"");
  task.prompt = prompt;
  task.answer = answer;
  if (element["check"].get_string().get(check) != simdjson::SUCCESS || check == "number") return task;
  if (check == "exact") {
    task.check = AnswerCheck::kExact;
  } else if (check == "regex") {
    task.check = AnswerCheck::kRegex;
    if (!text::regex::Search::compile(task.answer)) return bad("\"answer\" is no regular expression");
  } else {
    return bad("\"check\" is one of exact, number, regex");
  }
  return task;
}

}  // namespace

Result<std::vector<SearchTask>> parse_search_tasks(std::string_view lines) {
  simdjson::dom::parser parser;
  std::vector<SearchTask> tasks;
  std::size_t number = 0;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (line.find_first_not_of(" \r\t") == line.npos) continue;
    KVASIR_TRY(SearchTask task, parse_task(parser, line, number));
    tasks.push_back(std::move(task));
  }
  if (tasks.empty()) return make_error(ErrorKind::kBadFile, "tasks: the file has none", "tasks");
  return tasks;
}

bool is_solved(const SearchTask& task, std::string_view answer_text) {
  if (task.check == AnswerCheck::kRegex) {
    const auto pattern = text::regex::Search::compile(task.answer);
    return pattern && pattern->matches(answer_text);
  }
  const search::AnswerForm form = task.check == AnswerCheck::kNumber ? search::AnswerForm::kNumber : search::AnswerForm::kText;
  const auto answer = search::extract_answer(form, answer_text);
  return answer && answer == search::extract_answer(form, task.answer);
}

double SearchScore::solved_low() const { return wilson_interval(num_solved, num_items).low; }
double SearchScore::solved_high() const { return wilson_interval(num_solved, num_items).high; }

Result<SearchScore> run_search_tasks(Engine& engine, const std::vector<SearchTask>& tasks, const SearchRun& run,
                                     const std::function<Result<std::vector<TokenId>>(std::span<const std::string>)>& encode,
                                     const search::KeepGoing& keep_going, const std::function<void(std::size_t)>& progress) {
  const auto begin = std::chrono::steady_clock::now();
  SearchScore score;
  const std::int64_t judged_before = run.judge != nullptr ? run.judge->num_tokens() : 0;
  for (const SearchTask& task : tasks) {
    search::Sampler sampler(engine, keep_going);
    search::MethodOptions options = run.options;
    // Tasks that resemble each other would draw the same with the same noise.
    options.seed += static_cast<std::uint64_t>(score.num_items) * kSeedsPerTask;
    options.form = task.check == AnswerCheck::kNumber ? search::AnswerForm::kNumber : search::AnswerForm::kText;
    if (run.scorer == SearchScorer::kVerifier) {
      options.scorer = [&task](const search::Sample& sample) { return (is_solved(task, sample.text) ? 1000.0 : 0.0) + sample.mean_logprob(); };
    } else if (run.scorer == SearchScorer::kJudge) {
      options.scorer = [&](const search::Sample& sample) { return run.judge->score(task.prompt, sample.text); };
    }
    KVASIR_TRY(const search::SearchAnswer answer, run.method(sampler, {.text = task.prompt, .encode = encode}, options));
    ++score.num_items;
    score.num_solved += is_solved(task, answer.text) ? 1 : 0;
    score.num_tokens += answer.num_tokens;
    score.num_search_tokens += answer.num_search_tokens;
    if (progress) progress(static_cast<std::size_t>(score.num_items));
  }
  if (run.judge != nullptr) score.num_score_tokens = run.judge->num_tokens() - judged_before;
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return score;
}

}  // namespace kvasir::eval
