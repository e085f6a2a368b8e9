#include "server/api/search_end.h"

#include <algorithm>

namespace kvasir::server::api {

SearchEnd::SearchEnd(const SearchLimits& limits, std::int32_t num_prompts, std::int32_t num_candidates,
                     std::optional<search::AnswerForm> vote)
    : limits_(limits),
      num_candidates_(static_cast<std::size_t>(num_candidates)),
      vote_(vote),
      num_running_(std::int64_t{num_prompts} * num_candidates),
      ballots_(static_cast<std::size_t>(num_prompts)),
      ended_by_(static_cast<std::size_t>(num_prompts)) {}

void SearchEnd::end(std::size_t choice, std::string_view text) {
  --num_running_;
  if (!vote_) return;
  search::Ballot& ballot = ballots_[choice / num_candidates_];
  if (const auto answer = search::extract_answer(*vote_, text)) {
    ballot.add(*answer);
  } else {
    ballot.add_invalid();
  }
}

std::string_view SearchEnd::reason(std::size_t prompt, std::chrono::milliseconds elapsed) {
  std::string_view& reason = ended_by_[prompt];
  if (!reason.empty()) return reason;
  const search::Ballot& ballot = ballots_[prompt];
  const std::size_t num_left = num_candidates_ - std::min(num_candidates_, ballot.num_votes());
  if (limits_.max_total_tokens > 0 && num_running_ > 0 && num_tokens_ + num_running_ > limits_.max_total_tokens) {
    reason = "max_total_tokens";
  } else if (limits_.max_ms > 0 && elapsed.count() >= limits_.max_ms) {
    reason = "max_ms";
  } else if (vote_ && num_left > 0 && !ballot.leader().empty() && ballot.is_decided(num_left)) {
    reason = "decided";
  }
  return reason;
}

std::string_view SearchEnd::ended_by() const {
  const auto early = std::ranges::find_if(ended_by_, [](std::string_view reason) { return !reason.empty(); });
  return early == ended_by_.end() ? "complete" : *early;
}

}  // namespace kvasir::server::api
