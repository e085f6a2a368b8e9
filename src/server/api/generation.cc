#include "server/api/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/printable.h"
#include "engine/kv_params.h"
#include "engine/stop_token.h"
#include "grammar/compile/ignored_keywords.h"
#include "server/api/adapter_choice.h"
#include "server/api/api_context.h"
#include "server/api/warnings.h"

namespace kvasir::server::api {
namespace {

constexpr std::chrono::seconds kPrefillPing{1};
constexpr std::chrono::seconds kDecodePing{15};
constexpr std::size_t kMaxScoringInFlight = 32;

using Milliseconds = std::chrono::duration<double, std::milli>;

// A token with its alternatives, collected and then as JSON, twice: written, and waiting to be sent.
constexpr std::int64_t kBytesPerToken = 64;
constexpr std::int64_t kBytesPerAlternative = 200;
// A float of an embedding, and its digits twice.
constexpr std::int64_t kBytesPerDimension = 4 + 2 * 15;
// Answers are seldom as long as they may be.
constexpr std::int32_t kExpectedTokens = 1024;

// The memory of requests besides their bodies: prompts and answers. Each choice has its own prompt while it
// waits. Answers are kept until they are sent, which is much where they come in one piece with logprobs.
std::int64_t expected_bytes(bool is_kept, std::span<const Request> requests, std::int64_t embedding_size) {
  std::int64_t bytes = 0;
  for (const Request& request : requests) {
    const SamplingParams& sampling = request.sampling;
    const std::int64_t answer =
        std::int64_t{sampling.n} * std::min(sampling.max_tokens.value_or(kExpectedTokens), kExpectedTokens);
    const std::int64_t per_token = kBytesPerToken + kBytesPerAlternative * sampling.logprobs.value_or(0);
    const std::int64_t scored = sampling.prompt_logprobs ? std::ssize(request.prompt_token_ids) : 0;
    const std::int64_t per_scored =
        kBytesPerToken + kBytesPerAlternative * sampling.prompt_logprobs.value_or(0);
    const std::int64_t embedding = request.pooling == Pooling::kNone ? 0 : embedding_size * kBytesPerDimension;
    const auto prompt = static_cast<std::int64_t>(request.prompt_token_ids.size() * sizeof(TokenId));
    bytes += sampling.n * prompt + (is_kept ? answer * per_token : 0) + scored * per_scored + embedding;
  }
  return bytes;
}

void refuse(http::ResponseWriter& writer, const ApiError& error, observe::RefusalLog& refusals) {
  if (error.status == 503 || error.status == 429) refusals.note(error.message, observe::RefusalLog::Clock::now());
  writer.respond(error_response(error, writer.request()));
}

// Keywords of the guide's schema that rule nothing out.
void warn_of_ignored(const Guide& guide, const CompiledGuide& compiled, http::ResponseWriter& writer) {
  if (compiled == nullptr) return;
  Warnings warnings;
  for (const std::string& pointer : grammar::ignored_keywords(*compiled)) {
    warnings.add(fmt::format("{}: '{}' is ignored: JSON Schema does not define its value", guide.field, pointer));
  }
  add_warnings(warnings, writer);
}

}  // namespace

void Generation::start(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                       const GenerationRequest& asked, std::unique_ptr<AnswerFormat> format,
                       std::vector<Request> requests) {
  Parts parts = {.engine = context.engine,
                 .times = *context.times,
                 .refusals = context.refusals,
                 .rate_limiter = context.rate_limiter,
                 .model_name = answering_name(context, asked),
                 .writer = writer,
                 .format = std::move(format),
                 .choices_per_prompt = asked.use_beam_search ? asked.sampling.n : std::max(asked.sampling.n, asked.best_of),
                 .kept_per_prompt = asked.sampling.n,
                 .vote = asked.vote,
                 .is_search = asked.is_search,
                 .has_beams = asked.use_beam_search,
                 .search_limits = asked.search_limits,
                 .stream = asked.stream,
                 .has_kv_budget = asked.kv_budget.has_value(),
                 .keep_stop_token = asked.sampling.include_stop_str_in_output,
                 .memory = RequestMemory::Share(context.memory, writer->request().tenant.name)};
  if (const ApiStatus shared = share_tokens(asked.search_limits, std::max(asked.sampling.n, asked.best_of), requests, parts.max_search_tokens); !shared) {
    return refuse(*writer, shared.error(), context.refusals);
  }
  begin(context, std::move(parts), std::move(requests));
}

void Generation::start_scoring(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                               std::unique_ptr<AnswerFormat> format, std::vector<Request> requests) {
  Parts parts = {.engine = context.engine,
                 .times = *context.times,
                 .refusals = context.refusals,
                 .rate_limiter = context.rate_limiter,
                 .model_name = context.model_name,
                 .writer = writer,
                 .format = std::move(format),
                 .max_in_flight = kMaxScoringInFlight,
                 .memory = RequestMemory::Share(context.memory, writer->request().tenant.name)};
  begin(context, std::move(parts), std::move(requests));
}

void Generation::begin(const ApiContext& context, Parts parts, std::vector<Request> requests) {
  if (context.draining) {  // the engine will be told in a moment, and nobody is let in until then
    return refuse(*parts.writer, {503, "the server is shutting down", {}, "shutting_down"}, context.refusals);
  }
  std::int64_t num_prompt_tokens = 0;
  for (const Request& request : requests) num_prompt_tokens += std::ssize(request.prompt_token_ids);
  http::ResponseWriter& writer = *parts.writer;
  const std::int64_t wanted_bytes = expected_bytes(!parts.stream || parts.format->keeps_answer(), requests,
                                                   context.engine.model_info().embedding_size);
  if (const ApiStatus planned = plan_answer(writer, wanted_bytes, parts.memory); !planned) {
    return refuse(writer, planned.error(), context.refusals);
  }
  if (const ApiStatus admitted = admit(context, writer, num_prompt_tokens); !admitted) {
    return refuse(writer, admitted.error(), context.refusals);
  }
  std::make_shared<Generation>(std::move(parts))->submit(std::move(requests));
}

void Generation::submit(std::vector<Request> requests) {
  const std::size_t num_choices = requests.size() * static_cast<std::size_t>(parts_.choices_per_prompt);
  usages_.resize(requests.size());
  costs_.resize(requests.size());
  last_token_.resize(num_choices);
  finish_reasons_.resize(num_choices);
  if (!parts_.stream) choices_.resize(num_choices);
  best_of_ = BestOf(static_cast<std::int32_t>(requests.size()), parts_.choices_per_prompt, parts_.kept_per_prompt,
                    parts_.vote, parts_.is_search && !parts_.has_beams);
  if (parts_.is_search && !parts_.stream) {
    search_end_.emplace(static_cast<std::int32_t>(requests.size()), parts_.choices_per_prompt, parts_.vote, parts_.max_search_tokens);
  }
  num_unfinished_ = requests.size();
  const auto self = shared_from_this();
  parts_.writer->on_abort([self] {
    self->is_over_ = true;
    self->more_.reset();
    self->preparation_stop_.request_stop();
    if (self->num_in_flight_ == 0) return self->record();
    self->is_aborted_ = true;
    self->parts_.writer->await_generation();
    self->cancel_all();
  });
  requests_ = std::move(requests);
  submitted_at_ = Clock::now();
  prepare_adapter();
}

// Before the guide, the engine and the head of a stream.
void Generation::prepare_adapter() {
  if (requests_.empty() || requests_.front().adapter.empty()) return prepare_guide();
  auto sink = [self = shared_from_this()](Result<AdapterHold> hold) {
    self->parts_.writer->post([self, hold = std::move(hold)] { self->on_adapter(hold); });
  };
  parts_.engine.prepare_adapter(requests_.front().adapter, preparation_stop_.get_token(), std::move(sink));
}

void Generation::on_adapter(Result<AdapterHold> hold) {
  if (is_over_) return;
  if (!hold) {
    give_back();
    return fail(adapter_failed(requests_.front().adapter, hold.error()));
  }
  for (Request& request : requests_) request.adapter_hold = *hold;
  submitted_at_ = Clock::now();
  prepare_guide();
}

// Before the engine knows of the requests, and before the head of a stream.
void Generation::prepare_guide() {
  if (requests_.empty() || !requests_.front().guide) return begin_submitting();
  auto sink = [self = shared_from_this()](Result<CompiledGuide> compiled) {
    self->parts_.writer->post([self, compiled = std::move(compiled)] { self->on_guide(compiled); });
  };
  parts_.engine.prepare_guide(*requests_.front().guide, requests_.front().tenant, preparation_stop_.get_token(), std::move(sink));
}

void Generation::on_guide(Result<CompiledGuide> compiled) {
  if (is_over_) return;
  if (!compiled && requests_.front().guide->is_optional) {
    for (Request& request : requests_) request.guide.reset();
    Warnings warnings;
    warnings.add(printable_line(compiled.error().message) + ": calls are read and not guided");
    add_warnings(warnings, *parts_.writer);
  } else if (!compiled) {
    give_back();
    return fail_with(std::move(compiled).error());
  } else {
    for (Request& request : requests_) request.compiled_guide = *compiled;
    warn_of_ignored(*requests_.front().guide, *compiled, *parts_.writer);
  }
  submitted_at_ = Clock::now();
  begin_submitting();
}

void Generation::begin_submitting() {
  if (parts_.max_in_flight > 0) more_ = parts_.engine.keep_open();
  submit_waiting();
  if (search_end_ && parts_.search_limits.max_ms > 0 && !is_over_) {  // nothing is written before the end
    parts_.writer->when_quiet(std::chrono::milliseconds(parts_.search_limits.max_ms), [self = shared_from_this()] {
      if (self->is_over_) return;
      self->search_end_->end_for_time();
      self->end_search();
    });
  }
  if (!parts_.stream || is_over_) return;
  parts_.writer->when_quiet(kPrefillPing, [self = shared_from_this()] { self->ping(); });
}

void Generation::submit_waiting() {
  const std::size_t limit = parts_.max_in_flight == 0 ? requests_.size() : parts_.max_in_flight;
  const std::size_t end = std::min(requests_.size(), num_submitted_ + limit - num_in_flight_);
  if (end == num_submitted_) return;
  ids_.reserve(end);  // what the engine has begun can be cancelled
  std::vector<Submission> submissions;
  for (std::size_t prompt = num_submitted_; prompt < end; ++prompt) {
    auto sink = [self = shared_from_this(), prompt](RequestOutput output) {
      self->parts_.writer->post([self, prompt, output = std::move(output)]() mutable {
        self->on_output(prompt, std::move(output));
      });
    };
    submissions.push_back({requests_[prompt], std::move(sink)});
    requests_[prompt].adapter_hold.reset();  // the engine holds it from here on
    submissions.back().request.is_admitted = prompt > 0;
  }
  auto ids = more_ == nullptr ? parts_.engine.submit(std::move(submissions))
                              : parts_.engine.submit_some(std::move(submissions));
  if (!ids) {
    if (ids_.empty()) give_back();
    return fail_with(std::move(ids).error());
  }
  ids_.insert(ids_.end(), ids->begin(), ids->end());
  num_in_flight_ += ids->size();
  num_submitted_ += ids->size();
  if (num_submitted_ == requests_.size()) more_.reset();
}

void Generation::on_output(std::size_t prompt, RequestOutput output) {
  // First: what is written below may be what a slow reader is cut off for, and nobody else would record it.
  if (output.request_finished) --num_in_flight_;
  if (is_aborted_) return end_aborted(prompt, output);
  if (is_over_) return;
  const std::size_t choice =
      prompt * static_cast<std::size_t>(parts_.choices_per_prompt) + static_cast<std::size_t>(output.index);
  usages_[prompt] = output.usage;
  costs_[prompt] = output.cost;
  if (output.error) return fail_with(*std::move(output.error));
  if (output.finish_reason == FinishReason::kCancelled && search_end_ && search_end_->has_ended(prompt)) {
    output.finish_reason = FinishReason::kLength;
  }
  if (output.finish_reason == FinishReason::kCancelled) {
    return fail({503, "the server is shutting down", {}, "shutting_down"});
  }
  if (output.finish_reason == FinishReason::kError)
    return fail({500, "the generation failed", {}, "internal_error"});
  const bool is_first = !first_token_;
  observe(choice, output);
  best_of_.add(choice, output);
  parts_.rate_limiter.charge(parts_.writer->request().tenant, num_charged(output), Clock::now());
  if (!parts_.keep_stop_token && !parts_.format->shows_stop_token()) drop_stop_token(output);
  const bool request_finished = output.request_finished;
  const bool is_last = request_finished && --num_unfinished_ == 0;
  if (output.finish_reason) finish_reasons_[choice] = output.finish_reason;
  if (parts_.stream) {
    http::Events events;
    parts_.format->append_events(static_cast<std::int32_t>(choice), output, total_usage(), events);
    // With the end in one piece: a reader could not have taken what comes just before it.
    if (is_last) append_end(events);
    send_events(events);
    if (is_first && first_token_) observe_flush();
    if (is_last) return parts_.writer->end_stream();
  } else {
    const bool has_ended = output.finish_reason.has_value();
    if (search_end_) search_end_->add(choice, static_cast<std::int32_t>(output.token_ids.size()));
    collect(choice, std::move(output));
    if (search_end_ && has_ended) search_end_->end(choice, choices_[choice].text);
    if (is_last) return finish();
    if (search_end_ && has_ended) end_search();
  }
  if (request_finished && !is_over_) submit_waiting();
}

// Cancels the candidates that are not needed any more.
void Generation::end_search() {
  for (std::size_t prompt = 0; prompt < ids_.size(); ++prompt) {
    if (search_end_->has_ended(prompt)) parts_.engine.cancel(ids_[prompt]);
  }
}

// The requests of an answer whose client has gone end one by one.
void Generation::end_aborted(std::size_t prompt, const RequestOutput& output) {
  usages_[prompt] = output.usage;
  costs_[prompt] = output.cost;
  if (output.request_finished && num_in_flight_ == 0) record();
}

void Generation::observe(std::size_t choice, const RequestOutput& output) {
  if (output.token_ids.empty()) return;
  const auto now = Clock::now();
  if (!first_token_) observe_first_token(output, now);
  if (last_token_[choice]) parts_.times.inter_token.observe(now - *last_token_[choice]);
  last_token_[choice] = now;
}

void Generation::observe_first_token(const RequestOutput& output, Clock::time_point now) {
  first_token_ = now;
  observe::ModelTimes& times = parts_.times;
  const Milliseconds total = now - parts_.writer->received_at();
  const Milliseconds preprocess = submitted_at_ - parts_.writer->received_at();
  const Milliseconds queue(output.cost.queue_ms), prefill(output.cost.prefill_ms);
  times.time_to_first_token.observe(total);
  times.start_stage(observe::StartStage::kPreprocess).observe(preprocess);
  times.start_stage(observe::StartStage::kQueue).observe(queue);
  times.start_stage(observe::StartStage::kPrefill).observe(prefill);
  times.start_stage(observe::StartStage::kFirstDecode)
      .observe(std::max(Milliseconds(0), total - preprocess - queue - prefill));
  if (!parts_.stream) return;
  parts_.writer->when_quiet(kDecodePing, [self = shared_from_this()] { self->ping(); });
}

// Times a stream's first piece until the socket has taken it.
void Generation::observe_flush() {
  parts_.writer->when_sent([&times = parts_.times, begin = Clock::now()] {
    times.start_stage(observe::StartStage::kFlush).observe(Clock::now() - begin);
  });
}

void Generation::collect(std::size_t choice, RequestOutput output) {
  ChoiceResult& result = choices_[choice];
  result.cost = output.cost;
  result.text += output.text;
  result.token_ids.insert(result.token_ids.end(), output.token_ids.begin(), output.token_ids.end());
  std::ranges::move(output.logprobs, std::back_inserter(result.logprobs));
  if (!output.prompt_logprobs.empty()) result.prompt_logprobs = std::move(output.prompt_logprobs);
  if (!output.embedding.empty()) result.embedding = std::move(output.embedding);
  if (!output.finish_reason) return;
  result.finish_reason = *output.finish_reason;
  result.stop_string = std::move(output.stop_string);
}

void Generation::send_events(std::span<const http::Event> events) {
  if (events.empty()) return;
  begin_stream();
  parts_.writer->write(events);
}

void Generation::ping() {
  begin_stream();
  parts_.writer->ping();
}

void Generation::begin_stream() {
  if (std::exchange(stream_begun_, true)) return;
  warn_of_budget();
  parts_.writer->begin_stream();
}

// As it is by now: of a stream, when its prompts are computed.
void Generation::warn_of_budget() {
  if (!parts_.has_kv_budget) return;
  Warnings warnings;
  for (std::size_t prompt = 0; prompt < requests_.size(); ++prompt) {
    const auto unmet = unmet_budget(requests_[prompt].kv, usages_[prompt].kv, parts_.choices_per_prompt);
    if (unmet) warnings.add("kv_budget: " + *unmet);
  }
  add_warnings(warnings, *parts_.writer);
}

// Prompts run side by side: the longest time of each stage, and the sum of what they used.
RequestCost Generation::total_cost() const {
  RequestCost total;
  for (const RequestCost& cost : costs_) {
    total.queue_ms = std::max(total.queue_ms, cost.queue_ms);
    total.prefill_ms = std::max(total.prefill_ms, cost.prefill_ms);
    total.decode_ms = std::max(total.decode_ms, cost.decode_ms);
    total.cpu_ms += cost.cpu_ms;
    total.kv_byte_seconds += cost.kv_byte_seconds;
    total.num_preemptions += cost.num_preemptions;
  }
  return total;
}

void Generation::record() {
  const Milliseconds preprocess = submitted_at_ - parts_.writer->received_at();
  observe::GenerationRecord record{
      .id = {},
      .model = parts_.model_name,
      .settings = {.is_stream = parts_.stream, .num_choices = parts_.choices_per_prompt, .max_tokens = {}},
      .finish_reasons = {},
      .usage = total_usage(),
      .cost = total_cost(),
      .preprocess_ms = preprocess.count(),
      .first_token_ms =
          first_token_ ? Milliseconds(*first_token_ - parts_.writer->received_at()).count() : 0.0};
  for (const auto& reason : finish_reasons_) {
    if (reason) record.finish_reasons.push_back(*reason);
  }
  if (!requests_.empty()) {
    const Request& first = requests_.front();
    record.id = first.client_id;
    record.priority = first.priority;
    record.settings.is_guided = first.guide.has_value();
    record.settings.max_tokens = first.sampling.max_tokens;
    record.settings.temperature = first.sampling.temperature;
    record.settings.top_p = first.sampling.top_p;
  }
  parts_.writer->note_generation(record);
}

void Generation::finish() {
  Usage usage = total_usage();
  for (std::size_t choice = 0; search_end_ && !parts_.has_beams && choice < choices_.size(); ++choice) {
    if (!search_end_->counts(choice)) best_of_.cut(choice);
  }
  if (best_of_.chooses()) {
    usage.search_tokens = usage.completion_tokens;
    usage.completion_tokens = best_of_.keep(choices_);
  }
  if (best_of_.chooses() || search_end_) parts_.format->note_search(search_end_ ? search_end_->ended_by() : "complete");
  std::string body = parts_.format->whole(choices_, usage);
  note_end();
  warn_of_budget();
  parts_.writer->respond({.body = std::move(body)});
}

void Generation::append_end(http::Events& events) {
  parts_.format->append_last_events(total_usage(), events);
  parts_.format->append_end(events);
  note_end();
}

void Generation::note_end() {
  is_over_ = true;
  record();
  parts_.times.request.observe(Clock::now() - parts_.writer->received_at());
  parts_.memory.set(0);  // who gets the answer may come again at once
}

void Generation::fail_with(Error error) {
  const std::optional<Guide>& guide = requests_.front().guide;
  const bool is_of_guide = guide && error.param == guide->field;
  const bool is_unmet = error.kind == ErrorKind::kUnmet;
  ApiError told = to_api_error(std::move(error));
  if (is_of_guide && is_unmet) told.code = "unsupported_parameter";  // it is not about the context
  fail(told);
}

void Generation::fail(const ApiError& error) {
  is_over_ = true;
  more_.reset();
  if (!ids_.empty()) record();
  cancel_all();
  if (!stream_begun_) return refuse(*parts_.writer, error, parts_.refusals);
  http::Events events;
  parts_.format->append_failure(error, events);
  parts_.writer->write(events);
  parts_.writer->fail_stream();
}

// Gives a refused request's tokens back: a client that comes again as told does not pay twice.
void Generation::give_back() {
  std::int64_t num_prompt_tokens = 0;
  for (const Request& request : requests_) num_prompt_tokens += std::ssize(request.prompt_token_ids);
  parts_.rate_limiter.give_back(parts_.writer->request().tenant, num_prompt_tokens, Clock::now());
}

void Generation::cancel_all() {
  for (const RequestId id : ids_) parts_.engine.cancel(id);
}

Usage Generation::total_usage() const {
  Usage total;
  for (const Usage& usage : usages_) {
    total.prompt_tokens += usage.prompt_tokens;
    total.completion_tokens += usage.completion_tokens;
    total.cached_tokens += usage.cached_tokens;
    total.forced_tokens += usage.forced_tokens;
    total.draft_tokens += usage.draft_tokens;
    total.search_tokens += usage.search_tokens;
    total.draft_tokens_accepted += usage.draft_tokens_accepted;
    total.had_prediction |= usage.had_prediction;
    total.kv += usage.kv;
  }
  return total;
}

}  // namespace kvasir::server::api
