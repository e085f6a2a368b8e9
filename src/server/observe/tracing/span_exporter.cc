#include "server/observe/tracing/span_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/printable.h"
#include "base/process_memory.h"
#include "server/observe/tracing/otlp.h"

namespace kvasir::server::observe {
namespace {

// Source: OTLP 1.9, "Retryable Response Codes".
bool is_retryable(int status) { return status == 429 || status == 502 || status == 503 || status == 504; }

std::int64_t num_spans_of(const std::vector<TracedRequest>& batch) {
  std::size_t sum = 0;
  for (const TracedRequest& request : batch) sum += num_request_spans(request.record);
  return static_cast<std::int64_t>(sum);
}

}  // namespace

SpanExporter::SpanExporter(Options options, std::unique_ptr<CollectorClient> client)
    : options_(std::move(options)),
      client_(std::move(client)),
      pending_(options_.pending),
      thread_([this] { run(); }) {}

SpanExporter::~SpanExporter() { finish(std::chrono::milliseconds(0)); }

void SpanExporter::push(TracedRequest request) {
  const auto num_spans = static_cast<std::int64_t>(num_request_spans(request.record));
  const auto now = Clock::now();
  bool is_first = false, is_due = false;
  {
    const std::lock_guard lock(mutex_);
    if (finishing_) return counts_.count_dropped(DropReason::kShutdown, num_spans);
    is_first = pending_.empty();
    if (!pending_.push(std::move(request), now)) {
      return counts_.count_dropped(DropReason::kQueueFull, num_spans);
    }
    is_due = pending_.due_at() <= now;
  }
  if (is_first || is_due) changed_.notify_one();
}

void SpanExporter::finish(std::chrono::milliseconds time) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
    finish_by_ = Clock::now() + time;
    client_->end_by(finish_by_);
  }
  changed_.notify_one();
  thread_.join();
}

void SpanExporter::run() {
  claim_arena();
  for (auto batch = wait_for_batch(); !batch.empty(); batch = wait_for_batch()) {
    try {
      deliver(batch);
    } catch (const std::exception& error) {  // memory, in practice; the next batch may fit
      counts_.count_dropped(DropReason::kUnreachable, num_spans_of(batch));
      note_trouble(error.what());
    }
  }
}

std::vector<TracedRequest> SpanExporter::wait_for_batch() {
  std::unique_lock lock(mutex_);
  while (!finishing_ && pending_.due_at() > Clock::now()) {
    // The standard library adds to the time point, so that one without end would overflow.
    if (pending_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, pending_.due_at());
    }
  }
  return pending_.take_batch();
}

void SpanExporter::deliver(const std::vector<TracedRequest>& batch) {
  const std::int64_t num_spans = num_spans_of(batch);
  std::vector<Span> spans;
  for (const TracedRequest& request : batch) append_request_spans(request, options_.server, spans);
  const std::string body = export_request(options_.resource, options_.version, spans);
  spans = {};
  Backoff backoff(options_.backoff, Clock::now());
  while (true) {
    const bool is_last = is_finishing();
    const Attempt result = attempt(body, num_spans);
    if (result.outcome == Outcome::kTaken) return note_taken();
    note_trouble(result.reason);
    if (result.outcome == Outcome::kRefused) return counts_.count_dropped(DropReason::kRefused, num_spans);
    if (is_last) return counts_.count_dropped(DropReason::kShutdown, num_spans);
    const double random = std::uniform_real_distribution(0.0, 1.0)(random_);
    const auto delay = backoff.next(Clock::now(), result.retry_after, random);
    if (!delay) return counts_.count_dropped(DropReason::kUnreachable, num_spans);
    sleep(*delay);
  }
}

SpanExporter::Attempt SpanExporter::attempt(std::string_view body, std::int64_t num_spans) {
  const auto reply = client_->post(kOtlpContentType, body, Clock::now() + options_.timeout);
  if (!reply) return {Outcome::kAgain, reply.error().message, {}};
  if (reply->status / 100 == 2) {
    const PartialSuccess partial = parse_export_response(reply->body);
    const std::int64_t num_rejected = std::clamp<std::int64_t>(partial.num_rejected_spans, 0, num_spans);
    counts_.count_exported(num_spans - num_rejected);
    counts_.count_dropped(DropReason::kRejected, num_rejected);
    if ((num_rejected > 0 || !partial.message.empty()) && !std::exchange(warned_of_rejection_, true)) {
      options_.warn(fmt::format("traces: {} took no notice of {} of {} spans: {}", options_.shown_url,
                                num_rejected, num_spans, printable_line(partial.message)));
    }
    return {Outcome::kTaken, {}, {}};
  }
  const std::string message = parse_refusal(reply->body);
  std::string reason =
      fmt::format("status {}{}{}", reply->status, message.empty() ? "" : ": ", printable_line(message));
  return {is_retryable(reply->status) ? Outcome::kAgain : Outcome::kRefused, std::move(reason),
          reply->retry_after};
}

void SpanExporter::sleep(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return finishing_; });
}

bool SpanExporter::is_finishing() {
  const std::lock_guard lock(mutex_);
  return finishing_;
}

void SpanExporter::note_trouble(std::string_view reason) {
  if (std::exchange(in_trouble_, true)) return;
  dropped_before_ = counts_.all_dropped();
  options_.warn(fmt::format("traces: {} takes no spans: {}", options_.shown_url, reason));
}

void SpanExporter::note_taken() {
  if (!std::exchange(in_trouble_, false)) return;
  options_.warn(fmt::format("traces: {} takes spans again, {} were dropped", options_.shown_url,
                            counts_.all_dropped() - dropped_before_));
}

}  // namespace kvasir::server::observe
