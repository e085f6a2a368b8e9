#include "engine/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "sampling/sampler.h"

namespace kvasir {

BeamSearch::BeamSearch(Settings settings)
    : settings_(std::move(settings)), beams_(static_cast<std::size_t>(settings_.width)) {
  beams_[0].is_live = true;
}

void BeamSearch::propose(std::size_t slot, const PositionLogprobs& candidates) {
  Beam& beam = beams_[slot];
  CHECK(beam.is_live && !beam.has_proposed);
  beam.has_proposed = true;
  beam.candidates = candidates;
  --num_missing_;
}

double BeamSearch::score_of(double sum, std::int32_t length) const {
  return sum / std::pow(static_cast<double>(length), static_cast<double>(settings_.length_penalty));
}

// The candidates of all live beams, the best first.
std::vector<BeamSearch::Candidate> BeamSearch::candidates() const {
  std::vector<Candidate> all;
  for (std::size_t slot = 0; slot < beams_.size(); ++slot) {
    const Beam& beam = beams_[slot];
    if (!beam.is_live) continue;
    for (std::size_t rank = 0; rank < beam.candidates.top.size(); ++rank) {
      if (beam.candidates.top[rank].logprob <= sampling::kMinLogprob) break;  // it cannot be chosen, nor can those behind it
      all.push_back({.slot = slot, .rank = rank, .sum = beam.sum + beam.candidates.top[rank].logprob});
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &Candidate::sum);
  return all;
}

std::int32_t BeamSearch::add_step(const Candidate& candidate) {
  const Beam& beam = beams_[candidate.slot];
  Step step{.previous = beam.last_step, .token = {.token = beam.candidates.top[candidate.rank].token}};
  if (settings_.num_logprobs) {
    PositionLogprobs& shown = step.token.logprobs.emplace();
    shown.chosen = beam.candidates.top[candidate.rank];
    const auto count = std::min(beam.candidates.top.size(), static_cast<std::size_t>(*settings_.num_logprobs));
    shown.top.assign(beam.candidates.top.begin(), beam.candidates.top.begin() + static_cast<std::ptrdiff_t>(count));
  }
  steps_.push_back(std::move(step));
  return static_cast<std::int32_t>(steps_.size()) - 1;
}

void BeamSearch::end(const Candidate& candidate, FinishReason reason) {
  const Ended ended{.last_step = add_step(candidate), .finish_reason = reason, .score = score_of(candidate.sum, length_ + 1)};
  ended_.insert(std::ranges::upper_bound(ended_, ended.score, std::ranges::greater{}, &Ended::score), ended);
}

// A sum only falls, and only more length can make its score greater.
bool BeamSearch::is_decided(double best_live_sum) const {
  const auto width = static_cast<std::size_t>(settings_.width);
  if (ended_.size() < width) return false;
  const double most = std::max(score_of(best_live_sum, length_), score_of(best_live_sum, settings_.max_tokens));
  return ended_[width - 1].score >= most;
}

// First children stay with their parents; the others take the slots of beams that do not go on.
std::vector<std::optional<BeamSearch::Move>> BeamSearch::place(const std::vector<Candidate>& kept) {
  std::vector<std::optional<Move>> moves(beams_.size());
  std::vector<Beam> next(beams_.size());
  const auto put = [&](std::size_t slot, const Candidate& candidate) {
    moves[slot] = Move{.parent = candidate.slot, .token = beams_[candidate.slot].candidates.top[candidate.rank].token};
    next[slot] = {.is_live = true, .last_step = add_step(candidate), .sum = candidate.sum};
  };
  std::vector<Candidate> others;
  for (const Candidate& candidate : kept) {
    if (next[candidate.slot].is_live) {
      others.push_back(candidate);
    } else {
      put(candidate.slot, candidate);
    }
  }
  std::size_t slot = 0;
  for (const Candidate& candidate : others) {
    while (next[slot].is_live) ++slot;
    put(slot, candidate);
  }
  beams_ = std::move(next);
  num_missing_ = kept.size();
  return moves;
}

std::vector<std::optional<BeamSearch::Move>> BeamSearch::advance() {
  CHECK(is_ready() && !is_done_);
  const auto is_end = [&](TokenId token) {
    return length_ + 1 >= settings_.min_tokens && std::ranges::find(settings_.ends, token) != settings_.ends.end();
  };
  const bool is_last = length_ + 1 >= settings_.max_tokens;
  std::vector<Candidate> kept;
  for (const Candidate& candidate : candidates()) {
    const TokenId token = beams_[candidate.slot].candidates.top[candidate.rank].token;
    if (is_end(token)) {
      end(candidate, FinishReason::kStop);
    } else if (kept.size() < beams_.size()) {
      kept.push_back(candidate);
    }
  }
  if (is_last) {
    for (const Candidate& candidate : kept) end(candidate, FinishReason::kLength);
    kept.clear();
  }
  ++length_;
  if (!kept.empty() && is_decided(kept.front().sum)) kept.clear();
  is_done_ = kept.empty();
  return place(kept);
}

std::vector<BeamSearch::Answer> BeamSearch::answers() const {
  CHECK(is_done_);
  std::vector<Answer> answers;
  for (const Ended& ended : ended_) {
    if (answers.size() == beams_.size()) break;
    Answer& answer = answers.emplace_back(Answer{.finish_reason = ended.finish_reason, .score = ended.score});
    for (std::int32_t step = ended.last_step; step >= 0; step = steps_[static_cast<std::size_t>(step)].previous) {
      answer.tokens.push_back(steps_[static_cast<std::size_t>(step)].token);
    }
    std::ranges::reverse(answer.tokens);
  }
  return answers;
}

}  // namespace kvasir
