#include "engine/local_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <random>
#include <utility>

#include "base/process_memory.h"
#include "engine/engine_counters.h"
#include "engine/engine_snapshot.h"
#include "engine/kv_params.h"
#include "engine/model_info.h"
#include "engine/part_configs.h"
#include "engine/request_check.h"
#include "engine/request_cost.h"
#include "engine/step_turn.h"
#include "engine/warm_up.h"

namespace kvasir {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<std::unique_ptr<Engine>> Engine::load(const EngineConfig& config, const LoadProgress& progress) {
  std::unique_ptr<DraftModel> draft_model;
  EngineConfig own = config;
  if (!config.draft_model_path.empty()) {
    // The model's plan counts it as part of the program.
    own.process_bytes = config.process_bytes > 0 ? config.process_bytes : rss_bytes();
    KVASIR_TRY(draft_model, DraftModel::load(config, progress));
    own.process_bytes += draft_model->num_bytes();
  }
  KVASIR_TRY(LoadedModel loaded, load_model_file(own, progress, draft_model ? draft_model->pool() : nullptr));
  if (draft_model != nullptr) {
    KVASIR_CHECKED(draft_model->set_target(loaded.tokenizer.get(), loaded.info.vocab_size));
  }
  const EngineConfig resolved = loaded.settings;
  KVASIR_CHECKED(scheduler_config(resolved, loaded).validate());
  return std::make_unique<LocalEngine>(resolved, std::move(loaded), std::move(draft_model));
}

LocalEngine::LocalEngine(const EngineConfig& config, LoadedModel loaded, std::unique_ptr<DraftModel> draft_model)
    : config_(config),
      loaded_(std::move(loaded)),
      kv_(kv_config(config_, loaded_)),
      scheduler_(scheduler_config(config_, loaded_), kv_),
      guides_(loaded_.tokenizer.get(), config_.guide_memory_bytes),
      admission_(queue_limit_config(config_, kv_), waiting_config(config_), config_),
      runner_(*loaded_.model, *loaded_.backend, loaded_.kv_views(kv_.cells()),
              loaded_.prefill_only_memory(kv_.cells(), kv_.prefill_only().group()), loaded_.max_logit_rows),
      kv_prefault_(loaded_.kv_memory, kv_.cells().arena()),
      table_prefault_(loaded_.looked_up_tables()),
      draft_model_(std::move(draft_model)),
      draft_steps_(config_, draft_model_.get(), loaded_.draft_heads) {
  const std::int32_t chunk = config_.max_chunk_tokens > 0 ? config_.max_chunk_tokens
                                                          : config_.max_num_batched_tokens;
  loaded_.info.max_model_len_tokens = std::min(loaded_.info.max_model_len_tokens,
                                               kv_.max_sequence_tokens(chunk));
  note_short_context(config_, loaded_.info);
  const bool looks_ahead = config_.ttft_target_ms > 0 || config_.max_step_ms > 0.0;
  if (looks_ahead) {
    scheduler_.begin_with(
        warm_up(scheduler_config(config_, loaded_), kv_, runner_, loaded_.info.max_model_len_tokens));
  }
  publish_stats();
  if (config_.kv_journal != nullptr) {
    kv::RunRecord run = loaded_.policy_run();
    if (!config_.model_name.empty()) run.model = config_.model_name;
    config_.kv_journal->begin_run(std::move(run));
  }
  thread_ = std::thread([this] { run(); });
}

LocalEngine::~LocalEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_available_.notify_one();
  thread_.join();
}

Result<std::vector<RequestId>> LocalEngine::submit(std::vector<Submission> submissions) {
  return enter(std::move(submissions), /*allow_part=*/false);
}

Result<std::vector<RequestId>> LocalEngine::submit_some(std::vector<Submission> submissions) {
  return enter(std::move(submissions), /*allow_part=*/true);
}

Result<std::vector<RequestId>> LocalEngine::enter(std::vector<Submission> submissions, bool allow_part) {
  Status status;
  Adapters adapters;
  for (Submission& submission : submissions) {
    status = check_request(submission.request, loaded_.info, loaded_.tokenizer != nullptr);
    if (status) status = find_adapter(submission.request, adapters);
    if (status) status = compile_guide(submission.request);
    if (!status) break;
    apply_engine_defaults(submission.request, config_, loaded_.info);
  }
  std::unique_lock lock(mutex_);
  auto ids = status ? enqueue(submissions, adapters, allow_part) : std::unexpected(std::move(status).error());
  if (!ids) admission_.count_rejected(submissions.size());
  lock.unlock();
  if (ids) work_available_.notify_one();
  return ids;
}

Status LocalEngine::find_adapter(Request& request, Adapters& adapters) {
  UsedAdapter& used = adapters.emplace_back();
  if (request.adapter.empty()) return {};
  KVASIR_TRY(used.entry, loaded_.adapters->acquire(request.adapter));
  request.adapter_hold.reset();
  used.scale = request.adapter_scale.value_or(used.entry->scale);
  if (used.scale == 0.0f) used.entry.reset();  // the model as it is
  return {};
}

void LocalEngine::prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink) {
  adapter_reloader_.prepare(name, std::move(stop), std::move(sink));
}

Status LocalEngine::load_adapter(const AdapterConfig& adapter) {
  if (config_.adapter_memory_bytes == 0) {
    return make_error(ErrorKind::kUsage, "--adapter-memory is 0, so that adapters are loaded at the start alone", "adapter-memory");
  }
  return loaded_.adapters->load(adapter, /*may_leave=*/true);
}

Status LocalEngine::compile_guide(Request& request) {
  if (!request.guide) {
    request.compiled_guide = nullptr;
    return {};
  }
  if (request.compiled_guide != nullptr && guides_.is_mine(*request.compiled_guide)) return {};
  KVASIR_TRY(request.compiled_guide, guides_.compile(*request.guide, request.tenant));
  return {};
}

void LocalEngine::prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink) {
  guides_.prepare(guide, tenant, std::move(stop), std::move(sink));
}

Result<std::vector<RequestId>> LocalEngine::enqueue(std::vector<Submission>& submissions, Adapters& adapters,
                                                    bool allow_part) {
  std::vector<RequestId> ids;
  if (submissions.empty()) return ids;
  const bool is_open = !draining_ || submissions.front().request.is_admitted;
  if (!is_open || is_closed_ || stopping_)
    return make_error(ErrorKind::kUnavailable, "the server is shutting down");
  if (!lost_.empty()) return make_error(ErrorKind::kUnavailable, lost_, "device");
  KVASIR_TRY(const std::size_t num_admitted, admission_.check(submissions, allow_part, Clock::now()));
  // Short of memory it fails before it has counted a request that does not come.
  ids.reserve(num_admitted);
  mailbox_.reserve(std::bit_ceil(mailbox_.size() + num_admitted));
  for (std::size_t i = 0; i < num_admitted; ++i) {
    const std::int32_t expected_cached_tokens = admission_.admit(submissions[i].request);
    ids.push_back(RequestId{next_request_id_++});
    mailbox_.push_back(Arrival{ids.back(), std::move(submissions[i]), std::move(adapters[i]), expected_cached_tokens});
  }
  return ids;
}

std::shared_ptr<void> LocalEngine::keep_open() {
  {
    const std::lock_guard lock(mutex_);
    ++num_kept_open_;
  }
  // Without the lock, for it calls what takes it when there is no memory.
  return {this, [](LocalEngine* engine) {
            const std::lock_guard release(engine->mutex_);
            if (--engine->num_kept_open_ == 0) engine->all_done_.notify_all();
          }};
}

void LocalEngine::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    mailbox_.push_back(Cancellation{id});
  }
  work_available_.notify_one();
}

void LocalEngine::inspect(EngineSnapshotSink sink) {
  {
    const std::lock_guard lock(mutex_);
    mailbox_.emplace_back(std::move(sink));
  }
  work_available_.notify_one();
}

EngineStats LocalEngine::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = stats_;
  admission_.describe(stats);
  guides_.describe(stats);
  loaded_.adapters->describe(stats);
  learning_.describe(stats);
  stats.peak_rss_bytes = peak_rss_bytes();
  return stats;
}

void LocalEngine::drain(std::int64_t timeout_ms) {
  guides_.close();  // requests that wait for one have not been let in
  adapter_reloader_.close();
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto done = [this] {
    return admission_.num_unfinished() == 0 && (num_kept_open_ == 0 || is_closed_);
  };
  if (all_done_.wait_for(lock, std::chrono::milliseconds(timeout_ms), done)) return;
  cancel_all_ = is_closed_ = true;
  work_available_.notify_one();
  all_done_.wait(lock, done);
}

void LocalEngine::run() {
  claim_arena();
  while (wait_for_work()) {
    take_commands();
    if (scheduler_.has_runnable()) {
      const StepTurn::Held turn = StepTurn::take(config_.step_turn.get());
      step();
    }
    publish_stats();
  }
  take_commands();
  cancel_everything();
  publish_stats();
}

bool LocalEngine::wait_for_work() {
  std::unique_lock lock(mutex_);
  const bool was_idle = mailbox_.empty() && !scheduler_.has_runnable();
  const auto is_behind = [this] { return kv_prefault_.is_behind() || table_prefault_.is_behind(); };
  while (was_idle && mailbox_.empty() && !cancel_all_ && !stopping_ && is_behind()) {
    lock.unlock();
    if (kv_prefault_.is_behind()) {
      kv_prefault_.advance();
    } else {
      table_prefault_.advance();
    }
    lock.lock();
  }
  work_available_.wait(
      lock, [this] { return stopping_ || cancel_all_ || !mailbox_.empty() || scheduler_.has_runnable(); });
  if (was_idle && config_.gather_ms > 0) {
    work_available_.wait_for(lock, std::chrono::milliseconds(config_.gather_ms), [this] {
      return stopping_ || cancel_all_ || std::ssize(mailbox_) >= config_.max_num_seqs;
    });
  }
  return !stopping_;
}

void LocalEngine::take_commands() {
  std::vector<Command> commands;
  bool cancel_all = false;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(mailbox_);
    std::swap(cancel_all, cancel_all_);
  }
  std::optional<EngineSnapshot> snapshot;  // shared by all sinks of this step: it takes long in a large cache
  for (Command& command : commands) {
    if (auto* arrival = std::get_if<Arrival>(&command)) {
      start_request(std::move(*arrival));
      snapshot.reset();
    } else if (const auto* cancellation = std::get_if<Cancellation>(&command)) {
      cancel_request(cancellation->id);
      snapshot.reset();
    } else if (const auto* broken = std::get_if<KvPromise>(&command)) {
      freeze(*broken);
      snapshot.reset();
    } else {
      if (!snapshot) snapshot = take_engine_snapshot(requests_, scheduler_, kv_, Clock::now());
      std::get<EngineSnapshotSink>(command)(*snapshot);
    }
  }
  if (cancel_all) cancel_everything();
}

void LocalEngine::start_request(Arrival arrival) {
  auto active = std::make_unique<ActiveRequest>();
  ActiveRequest& request = *active;
  request.id = arrival.id;
  request.request = std::move(arrival.submission.request);
  request.sink = std::move(arrival.submission.sink);
  request.adapter = std::move(arrival.adapter);
  const SamplingParams& params = request.request.sampling;
  request.seed = params.seed ? *params.seed
                             : (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  if (!params.ignore_eos && loaded_.tokenizer != nullptr) {
    request.stop_tokens = loaded_.tokenizer->vocab().end_of_generation();
  }
  const auto now = Clock::now();
  const std::vector<TokenId> eos_token_ids = request.stop_tokens;
  request.stop_tokens.insert(request.stop_tokens.end(), params.stop_token_ids.begin(),
                             params.stop_token_ids.end());
  // The drops of a lossy policy depend on the steps in which tokens are computed.
  request.takes_forced_runs = !policy_settings(request.request.kv).is_lossy();
  request.takes_drafts = request.takes_forced_runs && request.request.speculates;
  begin_beam_search(request);
  auto sequence = sequence_request(request, eos_token_ids, arrival.expected_cached_tokens, now);
  learning_.prepare(request, kv_, counters_.num_waiting, sequence);
  request.owes_prompt_logprobs = params.prompt_logprobs.has_value();
  if (const Pooling pooling = request.request.pooling; pooling != Pooling::kNone) {
    request.embedding.emplace(
        pooling == Pooling::kRank ? loaded_.model->config().rank_pooling : pooling,
        static_cast<std::int32_t>(request.request.prompt_token_ids.size()));
  }
  request.allowed_tokens = allowed_tokens_of(params, loaded_.info.vocab_size);
  request.choices.resize(static_cast<std::size_t>(std::max(params.n, params.beam_width)));
  request.num_unfinished = static_cast<std::int32_t>(request.choices.size());
  adapter_uses_.begin(request.adapter.entry.get(), request.num_unfinished);
  for (ActiveChoice& choice : request.choices) {
    if (loaded_.tokenizer != nullptr)
      choice.text = std::make_unique<OutputProcessor>(*loaded_.tokenizer, params);
    if (request.request.compiled_guide != nullptr) {
      choice.guide.emplace(request.request.compiled_guide, request.request.guide->field, request.stop_tokens,
                           [this](const CompiledGuide& guide) { return guides_.renewed(guide); });
    }
  }
  requests_[static_cast<std::uint64_t>(request.id)] = std::move(active);
  counters_.num_prompt_tokens += static_cast<std::int64_t>(request.request.prompt_token_ids.size());
  const auto first = scheduler_.add(std::move(sequence), now);
  if (!first) {
    for (std::size_t i = request.choices.size(); i-- > 0;)
      emit_end(request, i, FinishReason::kError, first.error());
    return;
  }
  request.first_sequence = *first;
  for (std::size_t i = 0; i < request.choices.size(); ++i) streams_[request.sequence(i)] = {&request, i};
  begin_beams(request);
}

void LocalEngine::cancel_request(RequestId id) {
  const auto found = requests_.find(static_cast<std::uint64_t>(id));
  if (found == requests_.end()) return;
  ++counters_.num_requests_cancelled;
  end_request(*found->second, FinishReason::kCancelled, std::nullopt);
}

void LocalEngine::freeze_kv_policy(const KvPromise& broken) {
  {
    const std::lock_guard lock(mutex_);
    mailbox_.emplace_back(broken);
  }
  work_available_.notify_one();
}

void LocalEngine::freeze(const KvPromise& broken) {
  for (const auto& [id, request] : requests_) {
    if (!covers(broken, promise_of(request->request.kv, budget_share(request->request, model_info())))) continue;
    request->is_kv_frozen = true;
    for (std::size_t i = 0; i < request->choices.size(); ++i) {
      if (!request->choices[i].finished) scheduler_.freeze_kv(request->sequence(i));
    }
  }
}

void LocalEngine::end_request(ActiveRequest& request, FinishReason reason, const std::optional<Error>& error) {
  for (std::size_t i = request.choices.size(); i-- > 0;) {  // those that nobody is told of come first
    if (request.choices[i].finished) continue;
    scheduler_.finish(request.sequence(i));
    const bool is_last = request.num_unfinished == 1;
    emit_end(request, i, reason, error);
    if (is_last) return;  // the request is gone
  }
}

void LocalEngine::cancel_everything() {
  counters_.num_requests_cancelled += std::ssize(requests_);
  end_everything(FinishReason::kCancelled, std::nullopt);
}

void LocalEngine::end_everything(FinishReason reason, const std::optional<Error>& error) {
  std::vector<ActiveRequest*> requests;
  for (const auto& [id, request] : requests_) requests.push_back(request.get());
  for (ActiveRequest* request : requests) end_request(*request, reason, error);
}

void LocalEngine::step() {
  const auto begin = Clock::now();
  const sched::SchedulerOutput& output = scheduler_.schedule(begin);
  end_expired(output);
  if (output.empty()) {
    yield_held_beams();
    return;
  }
  counters_.kv_bytes_peak = std::max(counters_.kv_bytes_peak, kv_.held_bytes());
  build_tasks(output);
  draft_steps_.begin_step(output);
  const std::span<runtime::SequenceResult> results = runner_.run(output, tasks_);
  forced_runs_.extend(runner_.sampled());
  scheduled_.clear();
  for (const sched::ScheduledSequence& sequence : output.sequences) scheduled_.push_back(sequence.id);
  const auto end = Clock::now();
  charge(output, std::chrono::duration<double, std::milli>(end - begin).count());
  const std::string lost = loaded_.backend->error();
  if (!lost.empty()) mark_lost(lost, results);
  finish_failed(output, results);
  std::size_t i = 0;
  for (const sched::SequenceUpdate& update : scheduler_.update(runner_.sampled(), end)) {
    while (scheduled_.at(i) != update.id) ++i;  // those between have nothing to say
    ActiveRequest& request = *streams_.at(update.id).request;
    if (request.beams) {
      take_proposals(update);
      continue;
    }
    draft_steps_.advance(update, runner_.sampled().num_tokens[i], scheduler_, request);
    emit_update(update, results[i]);
  }
  advance_beams();
  draft_steps_.end_step(std::chrono::duration<double, std::milli>(end - begin).count(), scheduler_, counters_);
  count_step(counters_, std::ssize(scheduled_), std::chrono::duration<double>(end - begin).count());
  if (!lost.empty()) end_lost();
}

// Nothing of the step is a result.
void LocalEngine::mark_lost(const std::string& reason, std::span<runtime::SequenceResult> results) {
  const std::lock_guard lock(mutex_);
  lost_ = fmt::format("device: {} gives no results any more: {}", loaded_.info.device, reason);
  for (runtime::SequenceResult& result : results) result.error = Error{ErrorKind::kMachine, lost_, "device"};
}

void LocalEngine::end_lost() {
  end_everything(FinishReason::kError, Error{ErrorKind::kMachine, lost_, "device"});
  if (config_.on_device_lost) config_.on_device_lost(lost_);
}

void LocalEngine::charge(const sched::SchedulerOutput& output, double step_ms) {
  for (std::size_t i = 0; i < output.sequences.size(); ++i) {
    ActiveRequest& request = *streams_.at(output.sequences[i].id).request;
    charge_step(request.cost, output, i, loaded_.info.num_layers, step_ms,
                step_ms * loaded_.pool->num_threads(),
                held_bytes(loaded_.info, output, i) * request.kv_bytes.last_share());
  }
}

// Those that waited longer for their start than they were ready to.
void LocalEngine::end_expired(const sched::SchedulerOutput& output) {
  for (const SequenceId id : output.expired) {
    const Stream stream = streams_.at(id);
    emit_end(*stream.request, stream.choice, FinishReason::kError,
             Error{ErrorKind::kUnavailable, fmt::format("queue: the request did not start within {} ms (--queue-timeout)",
                                                        stream.request->request.start_within_ms)});
  }
}

void LocalEngine::build_tasks(const sched::SchedulerOutput& output) {
  tasks_.clear();
  forced_runs_.clear();
  adapter_uses_.begin_step();
  for (const sched::ScheduledSequence& sequence : output.sequences) {
    const Stream& stream = streams_.at(sequence.id);
    const Request& request = stream.request->request;
    adapter_uses_.run(stream.request->adapter.entry.get());
    std::optional<runtime::EmbeddingSum>& embedding = stream.request->embedding;
    tasks_.push_back({.params = &request.sampling,
                      .seed = stream.request->seed,
                      .choice_index = static_cast<std::int32_t>(stream.choice),
                      .allowed = sampling::AllowedTokens::all(),
                      .guesses_drawn_from = draft_steps_.drawn_from(sequence),
                      .stop_tokens = stream.request->stop_tokens,
                      .token_types = request.prompt_token_types,
                      .observer = stream.choice == 0 ? &request.logits_observer : nullptr,
                      .want_attention_scores = request.want_attention_scores,
                      .adapter = stream.request->adapter.as_rows_run_it(),
                      .embedding = embedding ? &*embedding : nullptr});
    if (sequence.samples) add_allowed_tokens(sequence, stream, tasks_.back());
    std::optional<GuidedChoice>& guide = stream.request->choices[stream.choice].guide;
    const bool has_runs = guide && sequence.samples && stream.request->takes_forced_runs;
    forced_runs_.add(has_runs ? &*guide : nullptr, request.sampling.logprobs);
  }
}

void LocalEngine::add_allowed_tokens(const sched::ScheduledSequence& sequence, const Stream& stream,
                                     runtime::SamplingTask& task) {
  std::optional<GuidedChoice>& guide = stream.request->choices[stream.choice].guide;
  if (!guide) {
    const std::optional<grammar::TokenMask>& mask = stream.request->allowed_tokens;
    if (mask) task.allowed = sampling::AllowedTokens::of(mask->words());
    return;
  }
  const auto begin = Clock::now();
  const std::span<const sampling::AllowedTokens> allowed = guide->allowed_at_each(sequence.draft_token_ids);
  count_mask(counters_, std::chrono::duration<double>(Clock::now() - begin).count());
  task.allowed = allowed.front();
  task.allowed_at_guesses = allowed.subspan(1);
}

}  // namespace kvasir
