#include "server/carriers/websocket/channel.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"
#include "base/reserved_work.h"
#include "server/api/api_context.h"
#include "server/api_error.h"
#include "server/carriers/websocket/channel_response_writer.h"
#include "server/carriers/websocket/upgrade.h"

namespace kvasir::server::carriers {

namespace websocket = boost::beast::websocket;
using boost::system::error_code;

namespace {

std::string_view text_of(const boost::beast::flat_buffer& buffer) {
  const auto bytes = buffer.cdata();
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Channel::Channel(http::Connection connection, http::ConnectionCounter::Slot slot, std::string early,
                 http::Request handshake, const http::SessionContext& context)
    : context_(context),
      is_secure_(connection.is_secure()),
      slot_(std::move(slot)),
      handshake_(std::move(handshake)),
      stream_(std::move(connection), std::move(early),
              http::MinTransferRate(context.limits.write_stall_timeout, context.limits.min_bytes_per_s)),
      stall_(stream_.get_executor()),
      deadline_(stream_.get_executor()),
      output_bound_(context.limits.output_buffer_bytes.max) {
  ++context_.metrics.num_connections;
}

Channel::~Channel() { --context_.metrics.num_connections; }

void Channel::start() {
  note_memory();
  // A client that answers no ping is gone.
  stream_.set_option(websocket::stream_base::timeout{.handshake_timeout = context_.limits.header_timeout,
                                                     .idle_timeout = context_.limits.idle_timeout,
                                                     .keep_alive_pings = true});
  stream_.read_message_max(static_cast<std::size_t>(context_.limits.body_bytes.max));
  stream_.text(true);
  context_.metrics.count_response(handshake_.path, 101);
  stream_.async_accept(beast_request(handshake_), [self = shared_from_this()](const error_code& error) {
    error ? self->abort(http::AbortCause::kDisconnected) : self->read();
  });
}

void Channel::read() {
  const ReservedWork reserved;
  stream_.async_read_some(
      input_, kReadBytes,
      [self = shared_from_this()](const error_code& error, std::size_t) {
        self->attempt([&] { self->on_read(error); });
      });
}

void Channel::on_read(const error_code& error) {
  if (is_closed_) return;
  if (error) return abort(http::AbortCause::kDisconnected);
  const bool is_done = stream_.is_message_done();
  // A small message counts for no tenant: one with much elsewhere may still say a word here.
  if (input_.size() > kReadBytes) input_memory_.belong_to(handshake_.tenant.name);
  const auto fits =
      input_memory_.resize(is_done ? body_memory_bytes(text_of(input_)) : std::ssize(text_of(input_)));
  if (!fits) return close(fits.error().status == 413 ? CloseCode::too_big : CloseCode::try_again_later);
  if (is_done) {
    message_rate_.reset();
    deadline_.cancel();
    if (!stream_.got_text()) return close(CloseCode::unknown_data);
    take(text_of(input_));
    input_.clear();
    if (input_.capacity() > kReadBytes) input_.shrink_to_fit();
    input_memory_.set(0);
    input_memory_.belong_to({});
  }
  if (is_closed_ || close_code_) return;
  if (!is_done) watch_message();
  read();
}

// As of a body over HTTP.
void Channel::watch_message() {
  const ReservedWork reserved;
  const auto now = std::chrono::steady_clock::now();
  if (!message_rate_) {
    message_rate_.emplace(context_.limits.body_timeout, context_.limits.min_bytes_per_s).begin(now);
    timed_input_bytes_ = 0;
  }
  message_rate_->moved(static_cast<std::int64_t>(input_.size() - timed_input_bytes_), now);
  timed_input_bytes_ = input_.size();
  deadline_.expires_at(message_rate_->deadline());
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->is_closed_ || !self->message_rate_) return;
    if (self->deadline_.expiry() <= std::chrono::steady_clock::now()) {
      self->abort(http::AbortCause::kDisconnected);
    }
  });
}

void Channel::take(std::string_view text) {
  if (!takes(0)) return abort(http::AbortCause::kSlowReader);  // who only asks
  std::string id;
  auto message = parse_channel_message(text, context_.limits, id);
  if (!message) return refuse(answers_.contains(id) ? std::string() : id, message.error());
  const auto open = answers_.find(message->id);
  if (message->cancel) {  // of one that has ended meanwhile: its end is on its way
    if (open == answers_.end()) return;
    const auto answer = open->second;
    forget(message->id);
    return answer->abort(http::AbortCause::kCancelled);
  }
  if (open != answers_.end()) {
    return refuse(
        {}, {400, fmt::format("id \"{}\" is that of a request that is not over", printable(message->id)),
             "id", "id_in_use"});
  }
  answer(*std::move(message));
}

void Channel::answer(ChannelMessage message) {
  auto request = request_of(message);
  if (!request) return refuse(message.id, request.error());
  const auto answer =
      std::make_shared<ChannelResponseWriter>(shared_from_this(), message.id, *std::move(request));
  answers_.emplace(message.id, answer);
  api::add_warnings(message.warnings, *answer);
  input_memory_.set(0);  // the answer has the message now
  answer->attempt([this, &answer] {
    const ApiStatus fits = answer->take_memory();
    if (!fits) return answer->respond(error_response(fits.error(), answer->request()));
    context_.router.handle(answer);
  });
}

ApiResult<http::Request> Channel::request_of(ChannelMessage& message) const {
  const Limit& limit = context_.limits.channel_requests;
  const std::int64_t num_requests = std::ssize(answers_) + 1;
  if (num_requests > limit.max) return std::unexpected(beyond(limit, num_requests));
  http::Request request{.method = "POST",
                        .path = context_.router.canonical_path(message.path),
                        .headers = handshake_.headers,
                        .body = std::move(message.body),
                        .tenant = {}};
  if (context_.admission != nullptr) {
    KVASIR_TRY(request.tenant, context_.admission->admit(request));
  }
  return request;
}

// Answers a message that did not become a request.
void Channel::refuse(std::string_view id, const ApiError& error) {
  const http::Response response = error_response(error, handshake_);
  context_.metrics.count_response(handshake_.path, error.status);
  send(status_message(id, response.status, response.headers, response.body), true);
}

bool Channel::takes(std::size_t piece_bytes) { return output_bound_.takes(unsent_piece_bytes_, piece_bytes); }

void Channel::send(std::string message, bool is_piece) {
  if (is_closed_ || close_code_) return;
  unsent_bytes_ += message.size();
  if (is_piece) unsent_piece_bytes_ += message.size();
  outgoing_.push_back({std::move(message), is_piece});
  note_memory();
  if (outgoing_.size() > 1) return;
  stream_.next_layer().begin_writing();
  write();
}

void Channel::write() {
  const ReservedWork reserved;
  watch_reader();
  stream_.async_write(
      boost::asio::buffer(outgoing_.front().text),
      [self = shared_from_this()](const error_code& error, std::size_t) {
        self->attempt([&] { self->on_written(error); });
      });
}

void Channel::on_written(const error_code& error) {
  if (is_closed_) return;
  // The stream closes for what was read: on_read() will know, when the client has had time to see why.
  if (error == boost::asio::error::operation_aborted && !close_code_) return;
  if (error) return abort(http::AbortCause::kDisconnected);
  const Outgoing& sent = outgoing_.front();
  unsent_bytes_ -= sent.text.size();
  if (sent.is_piece) unsent_piece_bytes_ -= sent.text.size();
  outgoing_.pop_front();
  note_memory();
  if (!outgoing_.empty()) return write();
  stall_.cancel();
  for (const auto& callback : std::exchange(sent_callbacks_, {})) callback();
  if (close_code_) close(*close_code_);
}

// A message may be long, so it is its bytes that must move.
void Channel::watch_reader() {
  const ReservedWork reserved;
  stall_.expires_at(stream_.next_layer().write_deadline());
  stall_.async_wait([self = shared_from_this()](const error_code& error) {
    const auto now = std::chrono::steady_clock::now();
    if (error || self->is_closed_ || self->outgoing_.empty()) return;
    if (self->stall_.expiry() > now) return;  // set anew meanwhile
    if (self->stream_.next_layer().write_deadline() > now) return self->watch_reader();
    self->abort(http::AbortCause::kSlowReader);
  });
}

void Channel::when_sent(std::function<void()> callback) {
  if (outgoing_.empty() || is_closed_) return callback();
  sent_callbacks_.push_back(std::move(callback));
}

void Channel::log_when_sent(observe::AccessRecord record) {
  const auto answered_at = std::chrono::steady_clock::now();
  when_sent([this, record = std::move(record), answered_at]() mutable {
    const std::chrono::duration<double, std::milli> flushed = std::chrono::steady_clock::now() - answered_at;
    record.flush_ms = flushed.count();
    record.total_ms += flushed.count();
    if (is_closed_) {
      record.abort_cause = name_of(end_cause_);
      context_.metrics.count_abort(end_cause_);
    }
    --context_.metrics.num_answering;
    http::log_access(context_, record);
  });
}

std::int64_t Channel::held_bytes() const {
  return connection_bytes(context_.limits, is_secure_) + static_cast<std::int64_t>(unsent_bytes_);
}

void Channel::note_memory() { memory_.set(held_bytes()); }

void Channel::close(CloseCode code) {
  if (is_closed_) return;
  close_code_ = code;
  if (!outgoing_.empty()) return;
  const ReservedWork reserved;
  stream_.async_close(
      code, [self = shared_from_this()](const error_code&) { self->abort(http::AbortCause::kDisconnected); });
}

void Channel::give_up() {
  try {
    abort(http::AbortCause::kOutOfMemory);
  } catch (const std::exception&) {
    // The connection is closed by then.
  }
}

void Channel::abort(http::AbortCause cause) {
  if (std::exchange(is_closed_, true)) return;
  end_cause_ = cause;
  stall_.cancel();
  deadline_.cancel();
  stream_.next_layer().close();
  for (const auto& [id, answer] : std::exchange(answers_, {})) answer->abort(cause);
  for (const auto& callback : std::exchange(sent_callbacks_, {})) callback();
}

}  // namespace kvasir::server::carriers
