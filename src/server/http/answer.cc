#include "server/http/answer.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "server/http/session.h"

namespace kvasir::server {
namespace {

// The client's own id for its request, to be echoed; only what a log line could hold.
std::string echoable_id(const HttpRequest& request) {
  const std::string* id = request.header("X-Client-Request-Id");
  if (id == nullptr) id = request.header("X-Request-Id");
  constexpr std::size_t kMaxIdBytes = 128;
  if (id == nullptr || id->size() > kMaxIdBytes) return {};
  for (const char c : *id) {
    if (c <= ' ' || c == 0x7F) return {};
  }
  return *id;
}

double milliseconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace

Answer::Answer(std::shared_ptr<Session> session, HttpRequest request, const Options& options)
    : session_(std::move(session)),
      request_(std::move(request)),
      options_(options),
      quiet_timer_(session_->executor()) {
  const SessionContext& context = session_->context_;
  request_id_ = context.ids.next("req_");
  client_request_id_ = echoable_id(request_);
  headers_.push_back({"X-Request-Id", request_id_});
  if (!client_request_id_.empty()) headers_.push_back({"X-Client-Request-Id", client_request_id_});
  context.cors.add_headers(request_, headers_);
}

void Answer::post(std::function<void()> task) {
  boost::asio::post(quiet_timer_.get_executor(),
                    [self = shared_from_this(), task = std::move(task)] { task(); });
}

void Answer::on_abort(std::function<void(AbortCause)> callback) {
  if (state_ != State::kDone) abort_callback_ = std::move(callback);
}

void Answer::respond(HttpResponse response) {
  if (state_ != State::kOpen) return;
  options_.keep_alive &= !session_->context_.draining;
  send_head(response, BodyFraming::kLength);
  if (request_.method != "HEAD") session_->send(response.body);
  finish(options_.keep_alive);
}

void Answer::begin_stream(HttpResponse head) {
  if (state_ != State::kOpen) return;
  state_ = State::kStreaming;
  options_.keep_alive &= !session_->context_.draining && !options_.is_http_1_0;
  send_head(head, options_.is_http_1_0 ? BodyFraming::kUntilClose : BodyFraming::kChunked);
}

void Answer::send_head(const HttpResponse& response, BodyFraming framing) {
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - received_at());
  headers_.push_back({"OpenAI-Processing-Ms", std::to_string(elapsed.count())});
  status_ = response.status;
  session_->context_.metrics.count_response(route_, response.status);
  session_->send(response_head(response, headers_, framing, options_.keep_alive));
  last_write_ = Clock::now();
}

void Answer::write(std::string_view piece) {
  if (state_ != State::kStreaming) return;
  const std::size_t waiting = session_->unsent_bytes();
  const auto limit = static_cast<std::size_t>(session_->context_.limits.output_buffer_bytes.max);
  if (waiting > 0 && waiting + piece.size() > limit) {
    // The engine cannot pause a sequence, so what it makes for this reader has nowhere to go.
    return session_->abort(AbortCause::kSlowReader);
  }
  session_->send(options_.is_http_1_0 ? std::string(piece) : http_chunk(piece));
  last_write_ = Clock::now();
}

void Answer::end_stream(bool keep_alive) {
  if (state_ != State::kStreaming) return;
  if (!options_.is_http_1_0) session_->send(kLastHttpChunk);
  finish(keep_alive && options_.keep_alive);
}

void Answer::finish(bool keep_alive) {
  state_ = State::kDone;
  abort_callback_ = nullptr;
  quiet_callback_ = nullptr;
  quiet_timer_.cancel();
  std::exchange(session_, nullptr)->end_answer(keep_alive, record());
}

AccessRecord Answer::record() const {
  const std::string* traceparent = request_.header("Traceparent");
  return {.request_id = request_id_,
          .client_request_id = client_request_id_,
          .trace_id = traceparent == nullptr ? std::string() : trace_id_of(*traceparent),
          .tenant = request_.tenant.name,
          .method = request_.method,
          .path = request_.path,
          .route = route_,
          .status = status_,
          .abort_cause = {},
          .total_ms = milliseconds_since(received_at()),
          .flush_ms = 0.0,
          .generation = generation_};
}

void Answer::abort(AbortCause cause) {
  if (state_ == State::kDone) return;
  state_ = State::kDone;
  quiet_callback_ = nullptr;
  quiet_timer_.cancel();
  const auto session = std::exchange(session_, nullptr);
  if (auto callback = std::exchange(abort_callback_, nullptr)) callback(cause);
  AccessRecord aborted = record();
  aborted.abort_cause = name_of(cause);
  session->log(aborted);
}

void Answer::when_sent(std::function<void()> callback) {
  if (state_ != State::kDone) session_->when_sent(std::move(callback));
}

void Answer::when_quiet(std::chrono::milliseconds quiet, std::function<void()> callback) {
  if (state_ == State::kDone) return;
  quiet_ = quiet;
  quiet_callback_ = std::move(callback);
  last_write_ = Clock::now();
  wait_until_quiet();
}

void Answer::wait_until_quiet() {
  quiet_timer_.expires_at(last_write_ + quiet_);
  quiet_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || !self->quiet_callback_) return;
    if (Clock::now() - self->last_write_ >= self->quiet_) {
      self->last_write_ = Clock::now();
      // A copy: the callback may replace itself.
      const auto callback = self->quiet_callback_;
      callback();
    }
    if (self->quiet_callback_) self->wait_until_quiet();
  });
}

}  // namespace kvasir::server
