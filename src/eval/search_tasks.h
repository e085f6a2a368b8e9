// Questions with answers that can be checked, and how many of them a way to search solves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "search/judge.h"
#include "search/methods.h"

namespace kvasir::eval {

enum class AnswerCheck : std::uint8_t {
  kExact,   // the text is the answer; case and spaces do not count
  kNumber,  // its last number is
  kRegex,   // the answer is a regular expression that is found in it
};

struct SearchTask {
  std::string prompt, answer;
  AnswerCheck check = AnswerCheck::kNumber;
};

// JSON lines {"prompt": ..., "answer": ..., "check": "exact" | "number" | "regex"}; number where nothing is said. Errors:
// kBadFile with the line.
Result<std::vector<SearchTask>> parse_search_tasks(std::string_view lines);
bool is_solved(const SearchTask& task, std::string_view text);

struct SearchScore {
  std::int32_t num_items = 0, num_solved = 0;
  std::int64_t num_tokens = 0, num_search_tokens = 0;
  std::int64_t num_score_tokens = 0;  // that a judge read
  double seconds = 0.0;

  double solved() const { return num_items > 0 ? static_cast<double>(num_solved) / num_items : 0.0; }
  // Wilson's interval of 95%.
  double solved_low() const;
  double solved_high() const;
};

// What candidates are ranked by.
enum class SearchScorer : std::uint8_t {
  kLogprob,   // the mean log-probability
  kVerifier,  // whether the task is solved: an upper end of what a scorer can give
  kJudge,     // what a model says of it
};

struct SearchRun {
  search::Method method = nullptr;
  search::MethodOptions options;
  SearchScorer scorer = SearchScorer::kLogprob;
  search::Judge* judge = nullptr;  // of kJudge
};

// `encode`: as search::Question has it. `progress` is told how many tasks are done.
Result<SearchScore> run_search_tasks(Engine& engine, const std::vector<SearchTask>& tasks, const SearchRun& run,
                                     const std::function<Result<std::vector<TokenId>>(std::span<const std::string>)>& encode,
                                     const search::KeepGoing& keep_going, const std::function<void(std::size_t)>& progress);

}  // namespace kvasir::eval
