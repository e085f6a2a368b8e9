#include "server/http/tracked_response_writer.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <new>
#include <utility>

#include "base/memory_reserve.h"
#include "base/reserved_work.h"
#include "server/api_error.h"
#include "server/observe/tracing/tracer.h"

namespace kvasir::server::http {
namespace {

// With the time in which a key's file is looked at, less than a second.
constexpr std::chrono::milliseconds kKeyInterval{250};

// The client's own id for its request, to be echoed; only what a log line could hold.
std::string echoable_id(const Request& request) {
  const std::string* id = request.header("X-Client-Request-Id");
  if (id == nullptr) id = request.header("X-Request-Id");
  constexpr std::size_t kMaxIdBytes = 128;
  if (id == nullptr || id->size() > kMaxIdBytes) return {};
  for (const char c : *id) {
    if (c <= ' ' || c > '~') return {};
  }
  return *id;
}

double milliseconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace

TrackedResponseWriter::TrackedResponseWriter(boost::asio::any_io_executor executor, Request request,
                                             Clock::time_point received_at, const SessionContext& context)
    : context_(context),
      request_(std::move(request)),
      received_at_(received_at),
      route_(context.router.pattern_of(request_)),
      key_timer_(executor),
      quiet_timer_(std::move(executor)) {
  request_id_ = context.ids.next("req_");
  client_request_id_ = echoable_id(request_);
  headers_.push_back({"X-Request-Id", request_id_});
  // Anthropic's clients know it by this name.
  if (error_shape_of(request_.path) == ErrorShape::kAnthropic)
    headers_.push_back({"Request-Id", request_id_});
  if (!client_request_id_.empty()) headers_.push_back({"X-Client-Request-Id", client_request_id_});
}

void TrackedResponseWriter::post(std::function<void()> task) {
  const ReservedWork reserved;
  boost::asio::post(quiet_timer_.get_executor(),
                    [self = shared_from_this(), task = std::move(task)] { self->attempt(task); });
}

void TrackedResponseWriter::attempt(const std::function<void()>& task) {
  const MemoryReserve::Spared spared;
  try {
    return task();
  } catch (const std::bad_alloc&) {
    give_up_or_end(503, "out of memory: the request could not be processed", "overloaded");
  } catch (const std::exception&) {
    give_up_or_end(500, "the request could not be processed", "internal_error");
  }
}

void TrackedResponseWriter::give_up_or_end(int status, const char* message, const char* code) {
  try {
    give_up({status, message, {}, code});
  } catch (const std::exception&) {
    give_up_unsaid();
  }
}

void TrackedResponseWriter::give_up(const ApiError& error) {
  // The engine's further work for it is for nobody.
  if (const auto callback = std::exchange(abort_callback_, nullptr)) callback();
  if (state_ == State::kStreaming) return fail_stream();
  respond(error_response(error, request_));
}

void TrackedResponseWriter::watch_key() {
  const ReservedWork reserved;
  key_timer_.expires_after(kKeyInterval);
  key_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->state_ == State::kDone) return;
    if (self->context_.admission->admits_still(self->request_.tenant)) return self->watch_key();
    self->give_up({401, "the API key was revoked", {}, "invalid_api_key"});
  });
}

void TrackedResponseWriter::on_abort(std::function<void()> callback) {
  if (state_ == State::kDone) return;
  abort_callback_ = std::move(callback);
  if (context_.admission != nullptr && !request_.tenant.key_id.empty()) watch_key();
}

std::vector<Header> TrackedResponseWriter::take_headers() {
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - received_at_);
  headers_.push_back({"OpenAI-Processing-Ms", std::to_string(elapsed.count())});
  return std::move(headers_);
}

void TrackedResponseWriter::note_begin(int status, State state) {
  status_ = status;
  state_ = state;
  context_.metrics.count_response(route_, status);
  note_write();
}

void TrackedResponseWriter::end() {
  state_ = State::kDone;
  keep(nullptr);
  abort_callback_ = nullptr;
  quiet_callback_ = nullptr;
  quiet_timer_.cancel();
  key_timer_.cancel();
}

void TrackedResponseWriter::note_generation(const observe::GenerationRecord& record) {
  generation_ = record;
  const bool was_awaited = std::exchange(awaits_generation_, false);
  if (!waiting_record_) {  // its line was written, when something failed
    if (was_awaited && state_ == State::kDone) context_.metrics.count_cost(this->record());
    return;
  }
  waiting_record_->generation = record;
  log_access(context_, *waiting_record_);
  waiting_record_.reset();
}

void TrackedResponseWriter::end_aborted(AbortCause cause) {
  const auto callback = std::exchange(abort_callback_, nullptr);
  end();
  if (callback) callback();
  observe::AccessRecord aborted = record();
  aborted.abort_cause = name_of(cause);
  if (awaits_generation_) {
    waiting_record_ = std::move(aborted);
  } else {
    log_access(context_, aborted);
  }
}

observe::AccessRecord TrackedResponseWriter::record() const {
  const std::optional<observe::TraceContext> caller = observe::trace_context_of(request_);
  std::optional<observe::RequestTrace> trace;
  if (context_.tracer != nullptr) trace = context_.tracer->begin(request_, caller);
  return {.request_id = request_id_,
          .client_request_id = client_request_id_,
          .trace_id = trace    ? observe::hex(trace->trace_id)
                      : caller ? observe::hex(caller->trace_id)
                               : std::string(),
          .tenant = request_.tenant.name,
          .method = request_.method,
          .path = request_.path,
          .route = std::string(route_),
          .api = context_.router.api_of(request_),
          .status = status_,
          .abort_cause = {},
          .stream_failed = stream_failed_,
          .total_ms = milliseconds_since(received_at_),
          .flush_ms = 0.0,
          .generation = generation_,
          .trace = std::move(trace)};
}

void TrackedResponseWriter::when_quiet(std::chrono::milliseconds quiet, std::function<void()> callback) {
  if (state_ == State::kDone) return;
  quiet_ = quiet;
  quiet_callback_ = std::move(callback);
  note_write();
  wait_until_quiet();
}

void TrackedResponseWriter::wait_until_quiet() {
  const ReservedWork reserved;
  quiet_timer_.expires_at(last_write_ + quiet_);
  quiet_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || !self->quiet_callback_) return;
    if (Clock::now() - self->last_write_ >= self->quiet_) {
      self->note_write();
      // A copy: the callback may replace itself.
      const auto callback = self->quiet_callback_;
      callback();
    }
    if (self->quiet_callback_) self->wait_until_quiet();
  });
}

void log_access(const SessionContext& context, const observe::AccessRecord& record) {
  context.metrics.count_cost(record);
  if (context.access_log != nullptr) context.access_log->write(record);
  context.request_log.note(record);
  if (context.tracer != nullptr) context.tracer->end(record);
}

}  // namespace kvasir::server::http
