#include "server/http/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <string_view>
#include <utility>

#include "base/reserved_work.h"
#include "server/api_error.h"
#include "server/http/http1_response_writer.h"

namespace kvasir::server::http {

using boost::system::error_code;

namespace {

// A client is told this when there is no memory to make an answer.
constexpr std::string_view kNoMemory =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 109\r\n"
    "Retry-After: 2\r\nConnection: close\r\n\r\n"
    "{\"error\":{\"message\":\"out of memory for the request\",\"type\":\"server_error\",\"param\":null,"
    "\"code\":\"overloaded\"}}\n";

}  // namespace

Session::Session(boost::asio::ip::tcp::socket socket, ConnectionCounter::Slot slot,
                 boost::asio::ssl::context* tls, const SessionContext& context)
    : slot_(std::move(slot)),
      connection_(std::move(socket), tls),
      context_(context),
      deadline_(connection_.executor()),
      stall_(connection_.executor()),
      reader_(std::make_unique<RequestReader>(context.limits, context.router)),
      write_rate_(context.limits.write_stall_timeout, context.limits.min_bytes_per_s) {
  ++context_.metrics.num_connections;
}

Session::~Session() { --context_.metrics.num_connections; }

void Session::start() {
  attempt([this] { shake_hands(); });
}

void Session::shake_hands() {
  note_memory();
  connection_.send_at_once();
  if (!connection_.is_secure()) return begin();
  set_deadline(std::chrono::steady_clock::now() + context_.limits.header_timeout);
  connection_.handshake([self = shared_from_this()](const error_code& error) {
    self->attempt([&] { self->on_handshake(error); });
  });
}

void Session::on_handshake(const error_code& error) {
  if (state_ == State::kClosed) return;
  if (!error) return begin();
  if (!connection_.falls_back(error)) return close();
  refuse({400, "this port speaks HTTPS, the request came as plain HTTP", {}, "https_required"});
}

void Session::begin() {
  state_ = State::kReading;
  set_read_deadline(RequestReader::Progress::kHeader);
  read();
}

void Session::read() {
  if (reading_ || state_ == State::kClosed) return;
  if (input_ended_) {
    if (state_ != State::kAnswering) close();
    return;
  }
  reading_ = true;
  connection_.read_some(boost::asio::buffer(read_buffer_),
                        [self = shared_from_this()](const error_code& error, std::size_t num_bytes) {
                          self->attempt([&] { self->on_read(error, num_bytes); });
                        });
}

void Session::on_read(const error_code& error, std::size_t num_bytes) {
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (state_ == State::kUpgrading && (!error || error == boost::asio::error::operation_aborted)) {
    input_.append(read_buffer_.data(), num_bytes);
    return upgrade();
  }
  if (error == boost::asio::error::eof && (state_ == State::kAnswering || will_advance_)) {
    input_ended_ = true;
    return on_half_closed();
  }
  // Also an answer that is over may be cut off on its way, which is logged.
  if (error) return state_ == State::kAnswering ? abort(AbortCause::kDisconnected) : close();
  if (state_ == State::kLingering) {
    lingered_bytes_ += num_bytes;
    return lingered_bytes_ > kMaxLingerBytes ? close() : read();
  }
  input_.append(read_buffer_.data(), num_bytes);
  note_memory();
  if (state_ == State::kReading) return advance();
  read_ahead();
}

void Session::read_ahead() {
  if (input_ended_) return on_half_closed();
  input_.size() < kMaxPipelinedBytes ? read() : watch_unread();
}

void Session::watch_unread() {
  if (std::exchange(is_watched_, true)) return;
  connection_.wait_for_error([self = shared_from_this()](const error_code& error) {
    self->is_watched_ = false;
    if (!error && self->answer_ != nullptr) self->abort(AbortCause::kDisconnected);
  });
}

// The client sends no more: either it has finished its request and still reads (shutdown), or it is gone
// (close). Only its answer to a byte of ours tells: a client that is gone resets the connection. A stream
// writes anyway. Before the answer begins an interim response is written, which every HTTP/1.1 client must
// skip (RFC 9110, 15.2); HTTP/1.0 knows none, so there an answer of which nothing is sent yet is given up.
void Session::on_half_closed() {
  if (answer_ == nullptr) return;  // it is on its way, and writing it will tell, or not yet begun
  if (!answer_->has_begun() && answer_->is_http_1_0()) return abort(AbortCause::kDisconnected);
  watch_unread();  // before the write: an event that has passed wakes nobody
  if (!answer_->has_begun()) send("HTTP/1.1 100 Continue\r\n\r\n");
}

// Takes what has been read as far as one request goes.
void Session::advance() {
  const bool was_untouched = reader_->untouched();
  std::size_t consumed = 0;
  const auto progress = reader_->take(input_, consumed);
  input_.erase(0, consumed);
  note_memory();
  if (!progress) return refuse(progress.error());
  const bool is_complete = *progress == RequestReader::Progress::kComplete;
  const std::int64_t bytes = sink_ != nullptr                            ? sink_->memory_bytes()
                             : !is_complete || reader_->takes_file() ? reader_->body_bytes()
                                                                     : body_memory_bytes(reader_->body());
  if (const ApiStatus fits = body_memory_.resize(bytes); !fits) return refuse(fits.error());
  if (was_untouched && !reader_->untouched()) request_began_ = std::chrono::steady_clock::now();
  if (is_complete && sink_ == nullptr) return answer_request();
  if (*progress == RequestReader::Progress::kBody && !std::exchange(may_send_body_, true)) {
    const auto tenant = admit(reader_->head());
    if (!tenant) return refuse(tenant.error());
    if (context_.admission != nullptr && tenant->key_id.empty()) {  // the memory is for those who may ask
      return refuse({413, "what needs no API key takes no body", {}, "limit_exceeded"});
    }
    body_memory_.belong_to(tenant->name);
    if (reader_->takes_file()) {
      auto sink = context_.router.open_sink(reader_->head(), *tenant);
      if (!sink) return refuse(sink.error());
      const ApiStatus fits = body_memory_.resize((*sink)->memory_bytes());
      if (!fits) return refuse(fits.error());
      sink_ = *std::move(sink);
    }
  }
  if (sink_ != nullptr) return pass_body();
  if (*progress == RequestReader::Progress::kBody) return await_body();
  // Empty lines before a request do not keep a connection open.
  if (!reader_->untouched()) set_read_deadline(*progress);
  read();
}

void Session::await_body() {
  if (reader_->expects_continue() && !std::exchange(said_continue_, true)) {
    send("HTTP/1.1 100 Continue\r\n\r\n");
  }
  set_read_deadline(RequestReader::Progress::kBody);
  read();
}

void Session::pass_body() {
  deadline_.cancel();
  const auto taken = sink_->write(reader_->take_body(), [self = shared_from_this()](const ApiStatus& status) {
    boost::asio::post(self->connection_.executor(), [self, status] {
      // While the sink took its time the client's did not run.
      if (self->body_rate_) self->body_rate_->begin(std::chrono::steady_clock::now());
      self->attempt([&] { self->on_body_passed(status); });
    });
  });
  if (!taken) return refuse(taken.error());
  if (*taken) on_body_passed({});
}

void Session::on_body_passed(const ApiStatus& status) {
  if (state_ != State::kReading) return;
  if (!status) return refuse(status.error());
  reader_->is_complete() ? answer_request() : await_body();
}

void Session::set_read_deadline(RequestReader::Progress progress) {
  const Limits& limits = context_.limits;
  if (reader_->untouched()) {
    return set_deadline(std::chrono::steady_clock::now() + spread(limits.idle_timeout));
  }
  if (progress == RequestReader::Progress::kHeader) {
    return set_deadline(request_began_ + spread(limits.header_timeout));
  }
  if (!body_rate_) body_rate_.emplace(limits.body_timeout, limits.min_bytes_per_s).begin(request_began_);
  const std::int64_t num_new =
      reader_->body_bytes() - std::exchange(timed_body_bytes_, reader_->body_bytes());
  body_rate_->moved(num_new, std::chrono::steady_clock::now());
  set_deadline(body_rate_->deadline());
}

// Thousands that came together and say nothing would end together, while all others wait for that; so each
// gets its place in a row, the parts of the golden ratio, in which neighbours are far apart.
std::chrono::milliseconds Session::spread(std::chrono::milliseconds time) const {
  constexpr std::uint32_t kGoldenPart = 0x9e3779b9;  // of 2^32
  const std::uint64_t place = slot_.number() * kGoldenPart;
  return time + time * place / 8 / (std::uint64_t{1} << 32);
}

void Session::set_deadline(std::chrono::steady_clock::time_point when) {
  const ReservedWork reserved;
  deadline_.expires_at(when);
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    // A wait whose timer has fired cannot be cancelled any more; then the new expiry tells.
    if (error || self->deadline_.expiry() > std::chrono::steady_clock::now()) return;
    self->attempt([&] { self->on_deadline(); });
  });
}

void Session::on_deadline() {
  const bool is_idle = state_ == State::kReading && reader_->untouched();
  if (state_ == State::kShaking || state_ == State::kLingering || is_idle) return close();
  if (state_ == State::kReading) refuse({408, what_is_late(), {}, "request_timeout"});
}

std::string Session::what_is_late() const {
  using Seconds = std::chrono::duration<double>;
  const Limits& limits = context_.limits;
  if (!may_send_body_) {
    return fmt::format("the headers did not arrive within {} s (--header-timeout)", Seconds(limits.header_timeout).count());
  }
  return fmt::format("{} bytes of the body arrived: it may take {} s (--body-timeout), and longer at {} bytes/s or more",
                     reader_->body_bytes(), Seconds(limits.body_timeout).count(), limits.min_bytes_per_s);
}

// Answers what could not become a request, and gives up on the connection.
void Session::refuse(const ApiError& error) {
  state_ = State::kAnswering;
  deadline_.cancel();
  sink_ = nullptr;
  Request incoming = reader_->take_request();
  std::string().swap(incoming.body);
  reader_ = std::make_unique<RequestReader>(context_.limits, context_.router);
  give_body_back();
  answer_ = std::make_shared<Http1ResponseWriter>(
      shared_from_this(), std::move(incoming),
      Http1ResponseWriter::Options{.received_at = std::chrono::steady_clock::now()});
  ++context_.metrics.num_answering;
  const auto answer = answer_;
  answer->respond(error_response(error, answer->request()));
}

// Before its body is read and anything is known of the path: who has no key learns nothing and takes nothing.
ApiResult<auth::Tenant> Session::admit(const Request& request) const {
  KVASIR_CHECKED(context_.hosts.check(request));
  if (context_.admission == nullptr || context_.cors.is_preflight(request)) return auth::Tenant{};
  return context_.admission->admit(request);
}

void Session::answer_request() {
  state_ = State::kAnswering;
  deadline_.cancel();
  const Http1ResponseWriter::Options options = {.keep_alive = reader_->keep_alive(),
                                                .is_http_1_0 = reader_->is_http_1_0(),
                                                .received_at = std::chrono::steady_clock::now()};
  Request incoming = reader_->take_request();
  incoming.sink = std::exchange(sink_, nullptr);
  auto tenant = admit(incoming);  // again after a body: the key may have been revoked meanwhile
  if (tenant && context_.upgrade.takes(incoming)) {
    const ApiStatus page = context_.hosts.check_page(incoming);
    if (page) {
      incoming.tenant = *std::move(tenant);
      return begin_upgrade(std::move(incoming));
    }
    tenant = std::unexpected(page.error());
  }
  if (tenant) {
    incoming.tenant = *std::move(tenant);
    body_memory_.belong_to(incoming.tenant.name);
  }
  answer_ = std::make_shared<Http1ResponseWriter>(shared_from_this(), std::move(incoming), options);
  ++context_.metrics.num_answering;
  reader_ = std::make_unique<RequestReader>(context_.limits, context_.router);
  said_continue_ = false;
  may_send_body_ = false;
  timed_body_bytes_ = 0;
  body_rate_.reset();
  const auto answer = answer_;
  const Request& request = answer->request();
  answer->attempt([&] {
    if (context_.cors.is_preflight(request)) {
      answer->respond(
          context_.cors.preflight_response(request, context_.router.allowed_methods(request.path)));
    } else if (!tenant) {
      answer->respond(error_response(tenant.error(), request));
    } else {
      context_.router.handle(answer);
    }
  });
  if (state_ == State::kAnswering) read_ahead();
}

void Session::begin_upgrade(Request request) {
  state_ = State::kUpgrading;
  upgrade_ = std::move(request);
  // Behind another request a read may be under way, which would take what belongs to the channel.
  reading_ ? connection_.cancel() : upgrade();
}

void Session::upgrade() {
  state_ = State::kClosed;
  if (is_watched_) connection_.cancel();
  stall_.cancel();
  context_.upgrade.begin(std::move(connection_), std::move(slot_), std::exchange(input_, {}),
                         *std::exchange(upgrade_, std::nullopt), context_);
}

void Session::send(std::string bytes) {
  if (state_ == State::kClosed || bytes.empty()) return;
  if (unsent_bytes() == 0) write_rate_.begin(std::chrono::steady_clock::now());
  if (outgoing_.empty()) {
    outgoing_ = std::move(bytes);  // a large answer is not there twice
  } else {
    outgoing_ += bytes;
  }
  if (writing_.empty()) write_some();
  note_memory();
}

// Counts the buffers, the bytes read ahead beyond a head's, and those not sent.
void Session::note_memory() {
  const auto head_bytes = static_cast<std::size_t>(context_.limits.header_bytes.max);
  const std::size_t more_bytes =
      unsent_bytes() + (input_.size() > head_bytes ? input_.size() - head_bytes : 0);
  connection_memory_.set(connection_bytes(context_.limits, connection_.is_secure()) +
                         static_cast<std::int64_t>(more_bytes));
}

void Session::when_sent(std::function<void()> callback) {
  if (writing_.empty()) return callback();
  sent_callback_ = std::move(callback);
}

void Session::write_some() {
  const ReservedWork reserved;
  if (writing_.empty()) std::swap(writing_, outgoing_);
  stall_.expires_at(write_rate_.deadline());
  stall_.async_wait([self = shared_from_this()](const error_code& error) {
    // As with deadline_; and what was written meanwhile did not stall.
    if (error || self->stall_.expiry() > std::chrono::steady_clock::now() || self->writing_.empty()) return;
    self->abort(AbortCause::kSlowReader);
  });
  connection_.write_some(boost::asio::buffer(writing_.data() + written_, writing_.size() - written_),
                         [self = shared_from_this()](const error_code& error, std::size_t num_bytes) {
                           self->attempt([&] { self->on_written(error, num_bytes); });
                         });
}

void Session::on_written(const error_code& error, std::size_t num_bytes) {
  stall_.cancel();
  if (state_ == State::kClosed) return;
  if (error) return abort(AbortCause::kDisconnected);
  written_ += num_bytes;
  write_rate_.moved(static_cast<std::int64_t>(num_bytes), std::chrono::steady_clock::now());
  if (written_ == writing_.size()) {
    writing_.clear();
    if (writing_.capacity() > kReadBytes) writing_.shrink_to_fit();  // nobody counts it
    written_ = 0;
    note_memory();
  }
  if (!writing_.empty() || !outgoing_.empty()) return write_some();
  if (const auto callback = std::exchange(sent_callback_, nullptr)) callback();
  if (state_ == State::kAnswering && answer_ == nullptr) on_answered();
}

// The answer is complete, but perhaps not sent.
void Session::end_answer(bool keep_alive, observe::AccessRecord record) {
  answer_ = nullptr;
  keep_alive_ = keep_alive;
  record_ = std::move(record);
  answered_at_ = std::chrono::steady_clock::now();
  if (state_ == State::kAnswering && writing_.empty()) on_answered();
}

void Session::on_answered() {
  --context_.metrics.num_answering;
  const std::chrono::duration<double, std::milli> flushed = std::chrono::steady_clock::now() - answered_at_;
  record_.flush_ms = flushed.count();
  record_.total_ms += flushed.count();
  log_access(context_, record_);
  if (!keep_alive_) return linger();
  state_ = State::kReading;
  set_read_deadline(RequestReader::Progress::kHeader);
  // Posted: a long row of pipelined requests must not become a deep stack.
  const ReservedWork reserved;
  will_advance_ = true;
  boost::asio::post(connection_.executor(), [self = shared_from_this()] {
    self->will_advance_ = false;
    if (self->state_ == State::kReading) self->attempt([&] { self->advance(); });
  });
}

void Session::abort(AbortCause cause) {
  if (state_ == State::kClosed) return;
  const auto answer = std::exchange(answer_, nullptr);
  if (state_ == State::kAnswering) {
    --context_.metrics.num_answering;
    context_.metrics.count_abort(cause);
    if (answer == nullptr) {  // over, and cut off on its way
      record_.abort_cause = name_of(cause);
      log_access(context_, record_);
    }
  }
  close();
  if (answer != nullptr) answer->abort(cause);
}

void Session::give_up() {
  if (state_ == State::kClosed) return;
  const auto answer = std::exchange(answer_, nullptr);
  const bool is_open = state_ == State::kReading || (state_ == State::kAnswering && answer != nullptr && !answer->has_begun());
  if (is_open && unsent_bytes() == 0) connection_.send_last(kNoMemory);
  if (state_ == State::kAnswering) {
    --context_.metrics.num_answering;
    context_.metrics.count_abort(AbortCause::kOutOfMemory);
  }
  close();
  if (answer == nullptr) return;
  try {
    answer->abort(AbortCause::kOutOfMemory);
  } catch (const std::exception&) {
    // Its work ends with it.
  }
}

void Session::linger() {
  state_ = State::kLingering;
  input_.clear();
  set_deadline(std::chrono::steady_clock::now() + kLingerTime);
  connection_.end_sending([self = shared_from_this()](const error_code& error) {
    if (self->state_ == State::kLingering) error ? self->close() : self->read();
  });
}

void Session::close() {
  state_ = State::kClosed;
  sent_callback_ = nullptr;
  sink_ = nullptr;
  body_memory_.set(0);
  deadline_.cancel();
  stall_.cancel();
  connection_.close();
}

}  // namespace kvasir::server::http
