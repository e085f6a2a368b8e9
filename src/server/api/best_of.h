// More answers than were asked for, and the likeliest of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kvasir/request.h"
#include "search/answer_extractor.h"
#include "server/api/answer_format.h"

namespace kvasir::server::api {

// Ranks the candidates of each prompt by the mean log-probability of their tokens, the one that ended them included. Of
// equal ones the first wins. OpenAI's best_of (API reference, "Completions"). With a vote, those that say what most say come
// first, the likeliest of them at the front. One that was cut short comes behind those that ended. Thread safety: none.
class BestOf {
 public:
  BestOf() = default;
  // Requires: num_kept <= num_candidates, both of a prompt. `vote`: where in a text the answer is that is voted for.
  // `ranks`: the best comes first where all are kept too.
  BestOf(std::int32_t num_prompts, std::int32_t num_candidates, std::int32_t num_kept,
         std::optional<search::AnswerForm> vote = {}, bool ranks = false);

  // Whether there is anything to choose.
  bool chooses() const { return ranks_ || num_kept_ < num_candidates_; }
  // Each output of a candidate, before anything is taken from it.
  void add(std::size_t choice, const RequestOutput& output);
  // The candidate was given up before its end.
  void cut(std::size_t choice) { scores_[choice].is_cut = true; }
  // Leaves the best of each prompt, likeliest first, and says how many tokens they had.
  std::int32_t keep(std::vector<ChoiceResult>& choices) const;

 private:
  struct Score {
    double sum = 0.0;
    std::int32_t num_tokens = 0;
    bool is_cut = false;

    double mean() const;
  };

  // How many of the prompt's candidates say what each says; 0: it says nothing that counts.
  std::vector<std::int32_t> votes_for(const std::vector<ChoiceResult>& choices, std::size_t first) const;

  std::int32_t num_candidates_ = 1, num_kept_ = 1;
  std::optional<search::AnswerForm> vote_;
  bool ranks_ = false;
  std::vector<Score> scores_;  // of each choice
};

// Tokens that a tenant is charged with for an output. Beams are charged with what all of them ran, at their end.
std::int64_t num_charged(const RequestOutput& output);

}  // namespace kvasir::server::api
