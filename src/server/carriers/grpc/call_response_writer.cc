#include "server/carriers/grpc/call_response_writer.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/reserved_work.h"
#include "server/carriers/grpc/message_json.h"

namespace kvasir::server::carriers {
namespace {

// gRPC ends the program when a value has other characters than these.
bool is_metadata_value(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string metadata_name(std::string_view header_name) {
  std::string name(header_name);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

CallError internal_error(const char* message) {
  return {.status = grpc::Status(grpc::StatusCode::INTERNAL, message), .details = {}};
}

}  // namespace

CallResponseWriter::CallResponseWriter(boost::asio::any_io_executor executor, http::Request request,
                                       CallLine& line, const http::SessionContext& context)
    : http::TrackedResponseWriter(executor, std::move(request), Clock::now(), context),
      line_(&line),
      stall_(executor),
      write_rate_(context.limits.write_stall_timeout, context.limits.min_bytes_per_s),
      memory_(context.memory),
      output_bound_(context.limits.output_buffer_bytes.max) {
  ++context.metrics.num_answering;
}

void CallResponseWriter::begin(ApiStatus admitted) {
  post([this, admitted = std::move(admitted)] { answer(admitted); });
}

void CallResponseWriter::answer(const ApiStatus& admitted) {
  if (!admitted) return respond(error_response(admitted.error(), request()));
  const std::int64_t bytes = body_memory_bytes(request().body);
  memory_.belong_to(request().tenant.name);
  if (const ApiStatus fits = memory_.resize(bytes); !fits) {
    return respond(error_response(fits.error(), request()));
  }
  context().router.handle(self());
}

void CallResponseWriter::add_initial_metadata() {
  for (const http::Header& header : take_headers()) {
    if (is_metadata_value(header.value)) {
      line_->context().AddInitialMetadata(metadata_name(header.name), header.value);
    }
  }
}

void CallResponseWriter::respond(http::Response response) {
  if (state() != State::kOpen || line_ == nullptr) return;
  note_begin(response.status, State::kOpen);
  add_initial_metadata();
  if (response.status != 200) {
    for (const http::Header& header : response.headers) {
      line_->context().AddTrailingMetadata(metadata_name(header.name), header.value);
    }
    return complete(call_error(response.status, response.body));
  }
  whole_bytes_ = response.body.size();
  memory_.set(body_memory_bytes(request().body) + static_cast<std::int64_t>(whole_bytes_));
  const bool is_read = read_message(response.body, line_->message());
  complete(is_read ? CallError{} : internal_error("the answer could not be said in this protocol"));
}

void CallResponseWriter::begin_stream() {
  if (state() != State::kOpen || line_ == nullptr) return;
  note_begin(200, State::kStreaming);
  add_initial_metadata();
}

void CallResponseWriter::write(std::span<const http::Event> events) {
  if (state() != State::kStreaming) return;
  std::size_t num_bytes = 0;
  for (const http::Event& event : events) num_bytes += event.data.size();
  if (!output_bound_.takes(unsent_bytes_, num_bytes)) return abort(http::AbortCause::kSlowReader);
  for (const http::Event& event : events) {
    if (state() == State::kStreaming) send(event);
  }
}

void CallResponseWriter::send(const http::Event& event) {
  if (event.kind == http::Event::Kind::kEnd) return;
  failure_.reset();
  if (event.kind == http::Event::Kind::kFailure) failure_ = call_error_of_failure(event.data);
  if (failure_) return;
  if (outgoing_.empty()) write_rate_.begin(Clock::now());
  unsent_bytes_ += event.data.size();
  outgoing_.push_back(event.data);
  note_write();
  if (!is_writing_) write_next();
}

void CallResponseWriter::write_next() {
  if (!read_message(outgoing_.front(), line_->message())) {
    outgoing_.clear();
    return complete(internal_error("an event could not be said in this protocol"));
  }
  is_writing_ = true;
  watch_reader();
  line_->write();
}

void CallResponseWriter::watch_reader() {
  const ReservedWork reserved;
  stall_.expires_at(write_rate_.deadline());
  stall_.async_wait([self = self()](const boost::system::error_code& error) {
    // A message that has left meanwhile did not stall. A wait that has fired cannot be cancelled any more.
    if (error || !self->is_writing_ || self->stall_.expiry() > Clock::now()) return;
    self->abort(http::AbortCause::kSlowReader);
  });
}

void CallResponseWriter::on_written(bool is_sent) {
  post([this, is_sent] { after_write(is_sent); });
}

void CallResponseWriter::after_write(bool is_sent) {
  is_writing_ = false;
  stall_.cancel();
  if (!outgoing_.empty()) {
    write_rate_.moved(std::ssize(outgoing_.front()), Clock::now());
    unsent_bytes_ -= outgoing_.front().size();
    outgoing_.pop_front();
  }
  if (!is_sent) abort(http::AbortCause::kCancelled);  // or gone: gRPC does not tell the two apart
  if (!outgoing_.empty()) return write_next();
  if (const auto callback = std::exchange(sent_callback_, nullptr)) callback();
  if (end_) finish_line();
}

void CallResponseWriter::end_stream() {
  if (state() == State::kStreaming) complete({});
}

void CallResponseWriter::fail_stream() {
  if (state() != State::kStreaming) return;
  note_failure();
  complete(failure_ ? *std::move(failure_) : internal_error("the answer is not complete"));
}

void CallResponseWriter::when_sent(std::function<void()> callback) {
  if (state() == State::kDone) return;
  if (outgoing_.empty()) return callback();
  sent_callback_ = std::move(callback);
}

void CallResponseWriter::complete(CallError end) {
  http::TrackedResponseWriter::end();
  record_ = record();
  ended_at_ = Clock::now();
  end_ = std::move(end);
  if (outgoing_.empty()) finish_line();
}

void CallResponseWriter::abort(http::AbortCause cause) {
  if (std::exchange(is_aborted_, true)) return;
  if (end_) {  // over, and cut off on its way
    if (record_) record_->abort_cause = name_of(cause);
  } else {
    end_aborted(cause);
    end_ = {.status = grpc::Status(grpc::StatusCode::CANCELLED, std::string(name_of(cause))), .details = {}};
  }
  context().metrics.count_abort(cause);
  sent_callback_ = nullptr;
  if (is_writing_) {  // which ends then; the line is finished after it
    outgoing_.resize(1);
    unsent_bytes_ = outgoing_.front().size();
    return line_->context().TryCancel();
  }
  outgoing_.clear();
  finish_line();
}

void CallResponseWriter::give_up_unsaid() {
  try {
    abort(http::AbortCause::kOutOfMemory);
  } catch (const std::exception&) {
    finish_line();
  }
}

void CallResponseWriter::on_cancelled() {
  post([this] { abort(http::AbortCause::kCancelled); });
}

void CallResponseWriter::finish_line() {
  CallLine* const line = std::exchange(line_, nullptr);
  if (line == nullptr) return;
  if (!end_->details.empty()) line->context().AddTrailingMetadata("kvasir-error-bin", end_->details);
  watch_finish(line->context());
  line->finish(end_->status);
}

// The last message also waits for its reader, and nothing tells how far it has come.
void CallResponseWriter::watch_finish(grpc::CallbackServerContext& call) {
  const ReservedWork reserved;
  {
    const std::lock_guard lock(finishing_mutex_);
    finishing_ = &call;
  }
  const Limits& limits = context().limits;
  const auto bytes = static_cast<std::int64_t>(whole_bytes_);
  stall_.expires_after(limits.write_stall_timeout +
                       std::chrono::milliseconds(bytes * 1000 / limits.min_bytes_per_s));
  stall_.async_wait([self = self()](const boost::system::error_code& error) {
    if (error) return;
    const std::lock_guard lock(self->finishing_mutex_);
    if (self->finishing_ == nullptr) return;
    self->abort(http::AbortCause::kSlowReader);  // for the log
    self->finishing_->TryCancel();
  });
}

void CallResponseWriter::on_done() {
  {
    const std::lock_guard lock(finishing_mutex_);
    finishing_ = nullptr;
  }
  post([this] { log(); });
}

void CallResponseWriter::log() {
  stall_.cancel();
  memory_.set(0);
  --context().metrics.num_answering;
  if (!record_) return;  // of an aborted one it is not this that makes the line
  const std::chrono::duration<double, std::milli> flushed = Clock::now() - ended_at_;
  record_->flush_ms = flushed.count();
  record_->total_ms += flushed.count();
  http::log_access(context(), *record_);
}

}  // namespace kvasir::server::carriers
