// What the task layer asks: solved tasks from a file, and facts among others like them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/gate/arm_divergence.h"
#include "eval/gate/exact_answers.h"
#include "eval/kv_needle.h"

namespace kvasir::eval {

// Text as tokens, without BOS.
using EncodeText = std::function<std::vector<TokenId>(std::string_view text)>;

struct SolvedTask {
  std::string question, solution;
};

// JSON lines {"question", "answer"} as GSM8K has them, or {"prompt", "answer"}; notes in << >> are left out. At most
// `max_tasks`. Errors: kBadFile with the line.
Result<std::vector<SolvedTask>> parse_solved_tasks(std::string_view lines, std::size_t max_tasks);

// Texts of at most `max_tokens`, each of eight tasks or as many as fit, one behind the other with their solutions. Tokens
// of solutions count, but none before `first_position`, where no policy has acted. `bos`: kNoToken for none.
std::vector<ScoredText> solution_texts(const EncodeText& encode, TokenId bos, std::span<const SolvedTask> tasks,
                                       std::int32_t max_tokens, std::int32_t first_position);

// A fact is asked for among `num_facts` of its kind; the n-th question is always the same. Those of more than
// `max_tokens` are left out.
std::vector<ExactQuestion> distractor_questions(const EncodeText& encode, const ChatFrame& frame,
                                                std::int32_t num_questions, std::int32_t num_facts,
                                                std::int32_t max_tokens);

}  // namespace kvasir::eval
