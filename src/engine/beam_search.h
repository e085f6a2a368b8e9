// Beam search: the likeliest continuations of a prompt, a few kept at each length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/request.h"
#include "sched/scheduler_output.h"

namespace kvasir {

// Beams lie in slots, one of which is a sequence. Every live beam proposes its likeliest next tokens; then the `width`
// best continuations of all are kept. One that ends is set aside and takes no slot. The search is over at max_tokens, or
// when no live beam can become as good as the `width` best that have ended. Scores are summed log-probabilities over
// length ^ length_penalty, the length in generated tokens, the end among them; of equal ones the earlier slot and the
// likelier token come first. Pure bookkeeping: no model, no clock. Thread safety: none.
class BeamSearch {
 public:
  struct Settings {
    std::int32_t width = 1;
    float length_penalty = 1.0f;
    std::int32_t max_tokens = 1;
    std::int32_t min_tokens = 0;                  // ends count from this many on
    std::vector<TokenId> ends;                    // tokens that end an answer
    std::optional<std::int32_t> num_logprobs;     // alternatives that answers show, as SamplingParams has them
  };
  struct Answer {
    std::vector<sched::SampledToken> tokens;
    FinishReason finish_reason = FinishReason::kLength;
    double score = 0.0;
  };
  // The beam of a slot becomes the beam of `parent` and a token behind it.
  struct Move {
    std::size_t parent = 0;
    TokenId token = kNoToken;
  };

  explicit BeamSearch(Settings settings);

  // Tokens that each beam has to propose: enough for all slots though every end is among them.
  static std::int32_t num_candidates(std::int32_t width, std::size_t num_ends) {
    return 2 * width + static_cast<std::int32_t>(num_ends);
  }

  // The likeliest tokens behind a live beam. In the beginning slot 0 alone is live.
  void propose(std::size_t slot, const PositionLogprobs& candidates);
  bool is_live(std::size_t slot) const { return beams_[slot].is_live; }
  bool is_ready() const { return num_missing_ == 0; }  // every live beam has proposed
  bool is_done() const { return is_done_; }

  // By slot; nothing for one that is idle from now on. A beam that goes on keeps its slot with one of its children.
  // Requires: is_ready().
  std::vector<std::optional<Move>> advance();

  // The best `width`, the best first; fewer where there were no others. Requires: is_done().
  std::vector<Answer> answers() const;

 private:
  struct Step {
    std::int32_t previous = -1;  // in steps_
    sched::SampledToken token;
  };
  struct Beam {
    bool is_live = false, has_proposed = false;
    std::int32_t last_step = -1;
    double sum = 0.0;
    PositionLogprobs candidates;
  };
  struct Candidate {
    std::size_t slot = 0, rank = 0;
    double sum = 0.0;
  };
  struct Ended {
    std::int32_t last_step = -1;
    FinishReason finish_reason = FinishReason::kStop;
    double score = 0.0;
  };

  double score_of(double sum, std::int32_t length) const;
  std::vector<Candidate> candidates() const;
  std::int32_t add_step(const Candidate& candidate);
  void end(const Candidate& candidate, FinishReason reason);
  bool is_decided(double best_live_sum) const;
  std::vector<std::optional<Move>> place(const std::vector<Candidate>& kept);

  const Settings settings_;
  std::vector<Beam> beams_;
  std::vector<Step> steps_;
  std::vector<Ended> ended_;  // the best first
  std::int32_t length_ = 0;   // of live beams
  std::size_t num_missing_ = 1;
  bool is_done_ = false;
};

}  // namespace kvasir
