#include "server/http/http1_response_writer.h"

#include <utility>

#include "server/http/session.h"

namespace kvasir::server::http {

Http1ResponseWriter::Http1ResponseWriter(std::shared_ptr<Session> session, Request request,
                                         const Options& options)
    : TrackedResponseWriter(session->executor(), std::move(request), options.received_at, session->context_),
      session_(std::move(session)),
      output_bound_(context().limits.output_buffer_bytes.max),
      encoding_(&context().events),
      options_(options) {
  std::vector<Header> headers;
  context().cors.add_headers(this->request(), headers);
  for (Header& header : headers) add_header(std::move(header));
}

void Http1ResponseWriter::respond(Response response) {
  if (state() != State::kOpen) return;
  options_.keep_alive &= !context().draining;
  session_->give_body_back();
  send_head(response, BodyFraming::kLength, State::kOpen);
  if (request().method != "HEAD") session_->send(std::move(response.body));
  finish(options_.keep_alive);
}

void Http1ResponseWriter::begin_stream() {
  if (state() != State::kOpen) return;
  options_.keep_alive &= !context().draining && !options_.is_http_1_0;
  send_head(encoding_->head(), options_.is_http_1_0 ? BodyFraming::kUntilClose : BodyFraming::kChunked,
            State::kStreaming);
}

bool Http1ResponseWriter::begin_body(Response head, std::int64_t num_bytes) {
  if (state() != State::kOpen) return true;
  options_.keep_alive &= !context().draining;
  head.headers.push_back({"Content-Length", std::to_string(num_bytes)});
  send_head(head, BodyFraming::kCounted, State::kStreaming);
  if (request().method == "HEAD") end_stream();
  return true;
}

void Http1ResponseWriter::write_body(std::string bytes) {
  if (state() != State::kStreaming) return;
  session_->send(std::move(bytes));
  note_write();
}

void Http1ResponseWriter::send_head(const Response& response, BodyFraming framing, State state) {
  framing_ = framing;
  note_begin(response.status, state);
  session_->send(response_head(response, take_headers(), framing, options_.keep_alive));
}

void Http1ResponseWriter::write(std::span<const Event> events) {
  std::string piece;
  for (const Event& event : events) encoding_->append(event, piece);
  write_piece(piece);
}

void Http1ResponseWriter::ping() {
  if (!encoding_->ping.empty()) write_piece(encoding_->ping);
}

void Http1ResponseWriter::write_piece(std::string_view piece) {
  if (state() != State::kStreaming) return;
  if (!output_bound_.takes(session_->unsent_bytes(), piece.size())) {
    // The engine cannot pause a sequence, so what it makes for this reader has nowhere to go.
    return session_->abort(AbortCause::kSlowReader);
  }
  session_->send(framing_ == BodyFraming::kChunked ? http_chunk(piece) : std::string(piece));
  note_write();
}

void Http1ResponseWriter::end_stream(bool keep_alive) {
  if (state() != State::kStreaming) return;
  session_->give_body_back();
  if (framing_ == BodyFraming::kChunked) session_->send(std::string(kLastHttpChunk));
  finish(keep_alive && options_.keep_alive);
}

void Http1ResponseWriter::fail_stream() {
  note_failure();
  end_stream(/*keep_alive=*/false);
}

void Http1ResponseWriter::finish(bool keep_alive) {
  end();
  std::exchange(session_, nullptr)->end_answer(keep_alive, record());
}

void Http1ResponseWriter::abort(AbortCause cause) {
  if (state() == State::kDone) return;
  session_ = nullptr;
  end_aborted(cause);
}

void Http1ResponseWriter::give_up_unsaid() {
  const auto session = session_;
  if (session != nullptr) session->give_up();
}

void Http1ResponseWriter::when_sent(std::function<void()> callback) {
  if (state() != State::kDone) session_->when_sent(std::move(callback));
}

}  // namespace kvasir::server::http
