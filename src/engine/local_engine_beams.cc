// Beam searches: LocalEngine's part. A request's sequences are its beams; one that has proposed its next tokens is held
// until all have.
#include <chrono>
#include <utility>
#include <vector>

#include "engine/local_engine.h"
#include "engine/request_cost.h"

namespace kvasir {

// The other beams begin with what the first one proposes.
void LocalEngine::begin_beams(ActiveRequest& request) {
  if (!request.beams) return;
  for (std::size_t i = 1; i < request.choices.size(); ++i) scheduler_.hold(request.sequence(i));
}

// Takes a beam's proposals instead of giving out a token.
void LocalEngine::take_proposals(const sched::SequenceUpdate& update) {
  const Stream stream = streams_.at(update.id);
  ActiveRequest& request = *stream.request;
  if (request.num_search_tokens == 0) {
    counters_.num_cached_prompt_tokens += update.num_cached_tokens;
    request.cached_tokens = update.num_cached_tokens;
  }
  request.num_search_tokens += 1;
  counters_.num_generated_tokens += 1;
  note_times(update.times, std::chrono::steady_clock::now(), request.cost);
  request.beams->propose(stream.choice, *update.tokens.front().logprobs);
  if (update.finish_reason) {
    request.choices[stream.choice].has_left = true;
  } else {
    scheduler_.hold(update.id);
  }
  if (request.beams->is_ready()) ready_beams_.push_back(&request);
}

void LocalEngine::advance_beams() {
  for (ActiveRequest* request : std::exchange(ready_beams_, {})) {
    const std::vector<std::optional<BeamSearch::Move>> moves = request->beams->advance();
    if (request->beams->is_done()) {
      end_beams(*request);
      continue;
    }
    for (std::size_t slot = 0; slot < moves.size(); ++slot) {
      if (!moves[slot]) continue;  // held until the end
      const SequenceId id = request->sequence(slot), parent = request->sequence(moves[slot]->parent);
      if (slot != moves[slot]->parent) scheduler_.fork(parent, id, moves[slot]->token);
    }
    for (std::size_t slot = 0; slot < moves.size(); ++slot) {  // once no other one goes on from it
      if (!moves[slot]) continue;
      if (slot == moves[slot]->parent) scheduler_.set_last_token(request->sequence(slot), moves[slot]->token);
      scheduler_.release(request->sequence(slot));
    }
  }
}

// Gives out the n best answers. Beams are fewer than choices only where the vocabulary is tiny.
void LocalEngine::end_beams(ActiveRequest& request) {
  std::vector<BeamSearch::Answer> answers = request.beams->answers();
  for (std::size_t i = 0; i < request.choices.size(); ++i) {
    if (!request.choices[i].has_left) scheduler_.finish(request.sequence(i));
  }
  const bool includes_stop = request.request.sampling.include_stop_str_in_output;
  const auto num_answers = static_cast<std::size_t>(request.request.sampling.n);
  for (std::size_t i = request.choices.size(); i-- > num_answers;) {
    RequestOutput unseen;
    unseen.finish_reason = FinishReason::kLength;
    deliver(request, i, std::move(unseen));
  }
  for (std::size_t i = 0; i < num_answers; ++i) {
    RequestOutput output;
    if (i < answers.size()) {
      output.finish_reason = answers[i].finish_reason;
      request.choices[i].append({.id = request.sequence(i), .tokens = answers[i].tokens, .finish_reason = answers[i].finish_reason},
                                includes_stop, output);
    } else {
      output.finish_reason = FinishReason::kLength;
    }
    deliver(request, i, std::move(output));  // with the last one the request is gone
  }
}

// Beams that hold seats or KV which the others of their requests wait for.
void LocalEngine::yield_held_beams() {
  for (const auto& [id, request] : requests_) {
    if (!request->beams || request->beams->is_ready()) continue;
    for (std::size_t i = 0; i < request->choices.size(); ++i) {
      const auto found = scheduler_.sequences().find(request->sequence(i));
      if (found == scheduler_.sequences().end()) continue;
      if (!found->second.is_held || found->second.status != sched::SequenceStatus::kRunning) continue;
      scheduler_.yield(request->sequence(i));
    }
  }
}

}  // namespace kvasir
