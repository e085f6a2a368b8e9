// When a search has drawn enough: its limits are used up, or what is left changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/answer_extractor.h"
#include "search/ballot.h"

namespace kvasir::server::api {

// Candidates vote in the order of their lengths, whichever comes first: so a seeded vote gives the same beside any company.
//
// Thread safety: none.
class SearchEnd {
 public:
  // `vote`: as BestOf has it. `max_tokens`: of each candidate, where that is its part of max_total_tokens; else 0.
  SearchEnd(std::int32_t num_prompts, std::int32_t num_candidates, std::optional<search::AnswerForm> vote, std::int32_t max_tokens);

  // More tokens of a candidate.
  void add(std::size_t choice, std::int32_t num_tokens) { candidates_[choice].num_tokens += num_tokens; }
  // A candidate has ended, by itself or at its limit. `text`: all of it. False: it came after the prompt's search had ended.
  bool end(std::size_t choice, std::string_view text);
  // The time is up for the prompts that are not done.
  void end_for_time();
  // Whether the prompt's other candidates are not needed, once and for all: the rest of a vote will hardly change its leader,
  // or the time is up.
  bool has_ended(std::size_t prompt) const { return !prompts_[prompt].ended_by.empty(); }
  // Whether a candidate that has ended counts: the search went on until its vote.
  bool counts(std::size_t choice) const;
  // "max_ms", "max_total_tokens" or "decided" where that is so of a prompt, in this order; else "complete".
  std::string_view ended_by() const;

 private:
  struct Candidate {
    std::int32_t num_tokens = 0;
    bool has_ended = false, has_voted = false;
    std::optional<std::string> answer;
  };
  struct Prompt {
    search::Ballot ballot;
    std::string_view ended_by;
    std::size_t num_ended = 0;
  };

  void count_votes(std::size_t prompt);

  const std::size_t num_candidates_;
  const std::optional<search::AnswerForm> vote_;
  const std::int32_t max_tokens_;
  bool was_cut_ = false;  // by max_tokens_
  std::vector<Candidate> candidates_;
  std::vector<Prompt> prompts_;
};

}  // namespace kvasir::server::api
