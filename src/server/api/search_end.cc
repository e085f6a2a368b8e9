#include "server/api/search_end.h"

#include <algorithm>
#include <limits>

namespace kvasir::server::api {

SearchEnd::SearchEnd(std::int32_t num_prompts, std::int32_t num_candidates, std::optional<search::AnswerForm> vote, std::int32_t max_tokens)
    : num_candidates_(static_cast<std::size_t>(num_candidates)),
      vote_(vote),
      max_tokens_(max_tokens),
      candidates_(static_cast<std::size_t>(num_prompts) * num_candidates_),
      prompts_(static_cast<std::size_t>(num_prompts)) {}

bool SearchEnd::end(std::size_t choice, std::string_view text) {
  Prompt& prompt = prompts_[choice / num_candidates_];
  if (!prompt.ended_by.empty()) return false;
  Candidate& candidate = candidates_[choice];
  candidate.has_ended = true;
  ++prompt.num_ended;
  was_cut_ |= max_tokens_ > 0 && candidate.num_tokens >= max_tokens_;
  if (!vote_) return true;
  candidate.answer = search::extract_answer(*vote_, text);
  count_votes(choice / num_candidates_);
  return true;
}

// Candidates that have ended vote once no other can end with as few tokens.
void SearchEnd::count_votes(std::size_t prompt) {
  Prompt& of = prompts_[prompt];
  const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(prompt * num_candidates_);
  const auto end = begin + static_cast<std::ptrdiff_t>(num_candidates_);
  std::int32_t shortest_running = std::numeric_limits<std::int32_t>::max();
  for (auto each = begin; each != end; ++each) {
    if (!each->has_ended) shortest_running = std::min(shortest_running, each->num_tokens);
  }
  while (of.ended_by.empty()) {
    auto next = end;
    for (auto each = begin; each != end; ++each) {
      if (!each->has_ended || each->has_voted || each->num_tokens > shortest_running) continue;
      if (next == end || each->num_tokens < next->num_tokens) next = each;
    }
    if (next == end) return;
    next->has_voted = true;
    if (next->answer) {
      of.ballot.add(*next->answer);
    } else {
      of.ballot.add_invalid();
    }
    const std::size_t num_left = num_candidates_ - of.ballot.num_votes();
    if (num_left > 0 && !of.ballot.leader().empty() && of.ballot.is_decided(num_left)) of.ended_by = "decided";
  }
}

void SearchEnd::end_for_time() {
  for (Prompt& prompt : prompts_) {
    if (prompt.ended_by.empty() && prompt.num_ended < num_candidates_) prompt.ended_by = "max_ms";
  }
}

bool SearchEnd::counts(std::size_t choice) const {
  const Candidate& candidate = candidates_[choice];
  const bool was_decided = prompts_[choice / num_candidates_].ended_by == "decided";
  return was_decided ? candidate.has_voted : candidate.has_ended;
}

std::string_view SearchEnd::ended_by() const {
  const auto is_of = [&](std::string_view reason) {
    return std::ranges::any_of(prompts_, [&](const Prompt& prompt) { return prompt.ended_by == reason; });
  };
  if (is_of("max_ms")) return "max_ms";
  if (was_cut_) return "max_total_tokens";
  return is_of("decided") ? "decided" : "complete";
}

}  // namespace kvasir::server::api
