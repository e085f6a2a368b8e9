// Ways to spend more tokens on an answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "search/answer_extractor.h"
#include "search/sampler.h"

namespace kvasir::search {

// A question, and how a conversation about it becomes tokens. Turns: the user's and the model's, in turn.
struct Question {
  std::string text;
  std::function<Result<std::vector<TokenId>>(std::span<const std::string> turns)> encode;
};

// How candidates are ranked; higher is better. Empty: the mean log-probability.
using Scorer = std::function<Result<double>(const Sample& candidate)>;

struct MethodOptions {
  std::int32_t budget = 1;  // answers, beams, turns or branches, as the method has them
  std::int32_t max_tokens = 256;
  float temperature = 0.7f;
  std::uint64_t seed = 1;
  AnswerForm form = AnswerForm::kNumber;
  Scorer scorer = {};
  float length_penalty = 1.0f;  // of beams
};

struct SearchAnswer {
  std::string text;
  std::int64_t num_tokens = 0;         // of the answer
  std::int64_t num_search_tokens = 0;  // of all that was drawn
  std::int32_t num_branches = 0;       // that were drawn
};

using Method = Result<SearchAnswer> (*)(Sampler& sampler, const Question& question, const MethodOptions& options);

// The likeliest token each time.
Result<SearchAnswer> greedy(Sampler& sampler, const Question& question, const MethodOptions& options);
// The best of `budget` answers by the scorer; the first one of equals.
Result<SearchAnswer> best_of(Sampler& sampler, const Question& question, const MethodOptions& options);
// The answer that most of `budget` give, the greedy one among them; it stops when the rest will not change it.
Result<SearchAnswer> vote(Sampler& sampler, const Question& question, const MethodOptions& options);
// `budget` beams: the sequence whose summed log-probability over its length to the power of the penalty is greatest.
Result<SearchAnswer> beam(Sampler& sampler, const Question& question, const MethodOptions& options);
// A draft, then `budget` - 1 times: the model's critique, and its answer anew. It ends when the critique finds nothing.
Result<SearchAnswer> revise(Sampler& sampler, const Question& question, const MethodOptions& options);
// Steps of a line each: of the open branches the best is continued in two ways, until `budget` branches were drawn; what
// was left behind may be taken up again.
Result<SearchAnswer> tree(Sampler& sampler, const Question& question, const MethodOptions& options);

// Null: no method has the name. "greedy", "best_of", "vote", "beam", "revise", "tree".
Method method_named(std::string_view name);
std::vector<std::string> method_names();

}  // namespace kvasir::search
