// When a search has drawn enough: its limits are used up, or what is left changes nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "search/answer_extractor.h"
#include "search/ballot.h"

namespace kvasir::server::api {

// 0: no limit.
struct SearchLimits {
  std::int64_t max_total_tokens = 0;  // of all candidates
  std::int64_t max_ms = 0;            // from the first that is submitted

  bool is_set() const { return max_total_tokens > 0 || max_ms > 0; }
};

// Thread safety: none.
class SearchEnd {
 public:
  // `vote`: as BestOf has it.
  SearchEnd(const SearchLimits& limits, std::int32_t num_prompts, std::int32_t num_candidates,
            std::optional<search::AnswerForm> vote);

  // Tokens of a candidate that goes on.
  void add(std::int32_t num_tokens) { num_tokens_ += num_tokens; }
  // A candidate has ended. `text`: all of it.
  void end(std::size_t choice, std::string_view text);
  // Why the prompt's other candidates are not needed, once and for all: "max_total_tokens", "max_ms", or "decided" where the
  // rest of a vote will hardly change its leader. Empty: they are. A limit is reached when another token of each would pass it.
  std::string_view reason(std::size_t prompt, std::chrono::milliseconds elapsed);
  bool has_ended(std::size_t prompt) const { return !ended_by_[prompt].empty(); }
  // Of all prompts: the first reason that a prompt has, else "complete".
  std::string_view ended_by() const;

 private:
  const SearchLimits limits_;
  const std::size_t num_candidates_;
  const std::optional<search::AnswerForm> vote_;
  std::int64_t num_tokens_ = 0, num_running_ = 0;
  std::vector<search::Ballot> ballots_;        // of each prompt
  std::vector<std::string_view> ended_by_;     // likewise
};

}  // namespace kvasir::server::api
