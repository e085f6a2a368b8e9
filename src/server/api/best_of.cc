#include "server/api/best_of.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace kvasir::server::api {

BestOf::BestOf(std::int32_t num_prompts, std::int32_t num_candidates, std::int32_t num_kept,
               std::optional<search::AnswerForm> vote, bool ranks)
    : num_candidates_(num_candidates),
      num_kept_(num_kept),
      vote_(vote),
      ranks_(ranks),
      scores_(static_cast<std::size_t>(num_prompts) * static_cast<std::size_t>(num_candidates)) {}

// An answer without a token comes last.
double BestOf::Score::mean() const {
  return num_tokens == 0 ? -std::numeric_limits<double>::infinity() : sum / num_tokens;
}

void BestOf::add(std::size_t choice, const RequestOutput& output) {
  if (!chooses()) return;
  Score& score = scores_[choice];
  score.num_tokens += static_cast<std::int32_t>(output.token_ids.size());
  for (const PositionLogprobs& position : output.logprobs) score.sum += position.chosen.logprob;
}

std::vector<std::int32_t> BestOf::votes_for(const std::vector<ChoiceResult>& choices, std::size_t first) const {
  std::vector<std::int32_t> votes(static_cast<std::size_t>(num_candidates_), 0);
  if (!vote_) return votes;
  std::vector<std::optional<std::string>> answers;
  std::map<std::string, std::int32_t> counts;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const bool votes_too = !scores_[first + i].is_cut;
    answers.push_back(votes_too ? search::extract_answer(*vote_, choices[first + i].text) : std::nullopt);
    if (answers.back()) ++counts[*answers.back()];
  }
  for (std::size_t i = 0; i < votes.size(); ++i) votes[i] = answers[i] ? counts[*answers[i]] : 0;
  return votes;
}

std::int32_t BestOf::keep(std::vector<ChoiceResult>& choices) const {
  std::vector<ChoiceResult> kept;
  std::int32_t num_tokens = 0;
  const auto num_candidates = static_cast<std::size_t>(num_candidates_);
  for (std::size_t first = 0; first < choices.size(); first += num_candidates) {
    std::vector<std::size_t> order(num_candidates);
    std::iota(order.begin(), order.end(), first);
    const std::vector<std::int32_t> votes = votes_for(choices, first);
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t choice) {
      return std::tuple(!scores_[choice].is_cut, votes[choice - first], scores_[choice].mean());
    });
    std::vector<PositionLogprobs> of_prompt = std::exchange(choices[first].prompt_logprobs, {});
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(num_kept_); ++rank) {
      num_tokens += scores_[order[rank]].num_tokens;
      kept.push_back(std::move(choices[order[rank]]));
      if (rank == 0) kept.back().prompt_logprobs = std::move(of_prompt);
    }
  }
  choices = std::move(kept);
  return num_tokens;
}

std::int64_t num_charged(const RequestOutput& output) {
  if (output.usage.search_tokens == 0) return std::ssize(output.token_ids);
  return output.request_finished ? output.usage.search_tokens : 0;
}

}  // namespace kvasir::server::api
