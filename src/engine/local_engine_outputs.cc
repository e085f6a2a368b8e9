// Outputs of requests: LocalEngine's part behind the step.
#include <chrono>
#include <utility>
#include <vector>

#include "engine/engine_counters.h"
#include "engine/local_engine.h"
#include "engine/request_cost.h"

namespace kvasir {

// Takes failed sequences out before their step counts, and keeps what was said about prompts.
void LocalEngine::finish_failed(const sched::SchedulerOutput& output,
                                std::span<runtime::SequenceResult> results) {
  struct Failure {
    SequenceId id;
    Error error;
  };
  std::vector<Failure> failures;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const SequenceId id = output.sequences[i].id;
    const Stream& stream = streams_.at(id);
    if (stream.choice == 0) {
      for (PositionLogprobs& entry : results[i].prompt_logprobs) {
        stream.request->prompt_logprobs.push_back(std::move(entry));
      }
    }
    if (results[i].error) failures.push_back({id, *results[i].error});
  }
  for (Failure& failure : failures) {
    const auto found = streams_.find(failure.id);
    if (found == streams_.end()) continue;  // its request has ended with another beam
    const Stream stream = found->second;
    scheduler_.finish(failure.id);
    if (!std::exchange(stream.request->has_failed, true)) ++counters_.num_requests_failed;
    if (stream.request->beams) {  // the others would wait for it
      end_request(*stream.request, FinishReason::kError, failure.error);
    } else {
      emit_end(*stream.request, stream.choice, FinishReason::kError, std::move(failure.error));
    }
  }
}

void LocalEngine::emit_update(const sched::SequenceUpdate& update, runtime::SequenceResult& result) {
  const Stream stream = streams_.at(update.id);
  ActiveRequest& request = *stream.request;
  ActiveChoice& choice = request.choices[stream.choice];
  RequestOutput output;
  output.finish_reason = update.finish_reason;
  output.attention_scores = std::move(result.attention_scores);
  // Its first news: the prompt is computed. The other choices find it cached by this one.
  if (choice.completion_tokens == 0 && stream.choice == 0) {
    counters_.num_cached_prompt_tokens += update.num_cached_tokens;
    request.cached_tokens = update.num_cached_tokens;
  }
  request.kv_bytes = update.kv_bytes;
  choice.kv = update.kv_usage;
  note_times(update.times, std::chrono::steady_clock::now(), request.cost);
  request.cost.num_preemptions = std::max(request.cost.num_preemptions, update.num_preemptions);
  if (request.embedding && update.finish_reason) {
    output.embedding = embedding_of(request, loaded_.model->pooled_head());
  }
  choice.append(update, request.request.sampling.include_stop_str_in_output, output);
  counters_.num_generated_tokens += std::ssize(output.token_ids);
  if (output.finish_reason && !update.finish_reason) scheduler_.finish(update.id);  // a stop string, or its guide
  if (output.finish_reason && choice.guide) {
    count_guided_answer(counters_, *output.finish_reason, choice.guide->num_forced());
  }
  deliver(request, stream.choice, std::move(output));
}

void LocalEngine::emit_end(ActiveRequest& request, std::size_t choice, FinishReason reason,
                           std::optional<Error> error) {
  RequestOutput output;
  output.finish_reason = reason;
  output.error = std::move(error);
  if (OutputProcessor* text = request.choices[choice].text.get()) output.text = text->flush();
  deliver(request, choice, std::move(output));
}

// Completes the output with what every output carries, hands it over and forgets what has ended.
void LocalEngine::deliver(ActiveRequest& request, std::size_t choice, RequestOutput output) {
  const RequestId id = request.id;
  output.request_id = id;
  output.index = static_cast<std::int32_t>(choice);
  if (choice == 0 && std::exchange(request.owes_prompt_logprobs, false)) {
    output.prompt_logprobs.emplace_back();  // nothing comes before the first token
    for (PositionLogprobs& entry : request.prompt_logprobs)
      output.prompt_logprobs.push_back(std::move(entry));
    request.prompt_logprobs.clear();
  }
  output.usage.prompt_tokens = static_cast<std::int32_t>(request.request.prompt_token_ids.size());
  output.usage.cached_tokens = request.cached_tokens;
  output.usage.kv_bytes_share = request.kv_bytes.last_share();
  output.usage.kv_bytes_share_mean = request.kv_bytes.mean_share();
  output.usage.kv_bytes_share_peak = request.kv_bytes.peak_share();
  for (const ActiveChoice& c : request.choices) {
    if (c.guide) output.usage.forced_tokens += c.guide->num_forced();
    output.usage.completion_tokens += c.completion_tokens;
    output.usage.kv += c.kv;
  }
  output.usage.kv.is_shadow = request.is_kv_shadow;
  output.usage.kv.is_downgraded = request.is_kv_frozen;
  output.usage.draft_tokens = request.num_drafts;
  output.usage.search_tokens = request.num_search_tokens;
  output.usage.draft_tokens_accepted = request.num_drafts_accepted;
  output.usage.had_prediction = !request.request.predicted_token_ids.empty();
  output.cost = request.cost;
  const bool ends = output.finish_reason.has_value();
  if (ends) {
    request.choices[choice].finished = true;
    const auto stream = streams_.find(request.sequence(choice));
    if (stream != streams_.end() && stream->second.request == &request) streams_.erase(stream);
    draft_steps_.forget(request.sequence(choice));
    adapter_uses_.end(request.adapter.entry.get());
    output.request_finished = --request.num_unfinished == 0;
    if (output.request_finished) request.adapter.entry.reset();  // it may leave by the time that its reader comes again
  }
  const bool request_finished = output.request_finished;
  if (static_cast<std::int32_t>(choice) < request.request.sampling.n) request.sink(std::move(output));
  if (!request_finished) return;
  delivered_.push_back({std::move(request.request.tenant), std::move(request.request.adapter)});
  requests_.erase(static_cast<std::uint64_t>(id));
  ++counters_.num_requests_finished;
}

void LocalEngine::publish_stats() {
  take_counts(scheduler_, std::chrono::steady_clock::now(), counters_);
  take_counts(kv_, counters_);
  counters_.hidden_bytes_peak = 4ll * loaded_.model->config().hidden_size *
                                scheduler_.stats().num_hidden_rows_peak;
  counters_.skipped_weight_bytes = loaded_.backend->skipped_weight_bytes();
  adapter_uses_.describe(counters_);
  scheduler_.describe_load(load_);
  learning_.note_waiting(counters_.num_waiting);
  const std::lock_guard lock(mutex_);
  stats_ = counters_;
  // A thread that waits for the end reads the numbers then.
  for (const Delivered& request : delivered_) admission_.leave(request.tenant, request.adapter);
  delivered_.clear();
  if (admission_.num_unfinished() == 0) all_done_.notify_all();
  admission_.set_load(load_);
  for (const Command& command : mailbox_) {
    if (const auto* arrival = std::get_if<Arrival>(&command)) {
      admission_.add_waiting(arrival->submission.request, arrival->expected_cached_tokens);
    }
  }
}

}  // namespace kvasir
