#include "server/carriers/grpc/relay.h"

#include <algorithm>
#include <boost/asio/write.hpp>
#include <chrono>
#include <optional>
#include <utility>

namespace kvasir::server::carriers {
namespace {

using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// Until a connection asks again whether its call may begin.
constexpr std::chrono::milliseconds kPause{10};
// How often late messages are looked for.
constexpr std::chrono::milliseconds kLook{250};

http::MinTransferRate message_rate(const Limits& limits) { return {limits.body_timeout, limits.min_bytes_per_s}; }

}  // namespace

void Relay::Way::forget(std::size_t num_bytes) {
  std::copy(buffer.data() + num_bytes, buffer.data() + size, buffer.data());
  size -= num_bytes;
}

Relay::Relay(boost::asio::ip::tcp::socket socket, http::ConnectionCounter::Slot slot, Inner inner,
             boost::asio::ssl::context* tls, const http::SessionContext& context,
             std::shared_ptr<RelayShare> share)
    : slot_(std::move(slot)),
      client_(std::move(socket), tls),
      inner_(std::move(inner)),
      context_(context),
      share_(std::move(share)),
      memory_(context.memory),
      calm_(context.limits.grpc_resets.max, context.limits.channel_requests.max, message_rate(context.limits),
            share_->abandoned, Clock::now()),
      deadline_(client_.executor()),
      pause_(client_.executor()),
      look_(client_.executor()) {
  memory_.set(connection_bytes(context.limits, client_.is_secure()));
  ++context_.metrics.num_connections;
  ++share_->num_open;
}

Relay::~Relay() {
  calm_.end(Clock::now());
  --share_->num_open;
  --context_.metrics.num_connections;
}

void Relay::start() {
  client_.send_at_once();
  if (!client_.is_secure()) return begin();
  set_deadline(context_.limits.header_timeout);
  client_.handshake([self = shared_from_this()](const error_code& error) {
    if (error || self->is_closed_) return self->close();
    self->deadline_.cancel();
    self->begin();
  });
}

void Relay::begin() {
  read_client();
  read_grpc();
}

void Relay::read_client() {
  client_.read_some(boost::asio::buffer(in_.buffer.data() + in_.size, kBufferBytes - in_.size),
                    [self = shared_from_this()](const error_code& error, std::size_t num_bytes) {
                      if (self->is_closed_ || self->is_lingering_) return;
                      if (error) return self->close();
                      self->in_.size += num_bytes;
                      if (self->is_refused_) return self->close();
                      self->judge_client();
                    });
}

void Relay::judge_client() {
  const auto now = Clock::now();
  const auto scanned =
      in_.scanner.scan(in_.bytes(), [&](const Frame& frame) { return calm_.take(frame, now); });
  watch_messages();
  if (scanned.num_passed > 0) return to_grpc(scanned.num_passed, 0, scanned.verdict);
  go_on(scanned.verdict);
}

void Relay::to_grpc(std::size_t num_bytes, std::size_t num_sent, FrameVerdict verdict) {
  is_passing_ = true;
  inner_.async_write_some(boost::asio::buffer(in_.buffer.data() + num_sent, num_bytes - num_sent),
                          [self = shared_from_this(), num_bytes, num_sent, verdict](const error_code& error,
                                                                                    std::size_t num_more) {
                            self->is_passing_ = false;
                            if (self->is_closed_ || self->is_lingering_) return;
                            if (error) return;  // gRPC is done with it: what it has said is read to its end
                            const std::size_t sum = num_sent + num_more;
                            if (sum < num_bytes) return self->to_grpc(num_bytes, sum, verdict);
                            self->in_.forget(num_bytes);
                            self->go_on(verdict);
                          });
}

void Relay::go_on(FrameVerdict verdict) {
  if (is_refused_ || verdict == FrameVerdict::kRefuse) return refuse();
  if (verdict == FrameVerdict::kPass) return read_client();
  end_late_calls();
  pause_.expires_after(kPause);
  pause_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && !self->is_closed_) self->judge_client();
  });
}

void Relay::read_grpc() {
  inner_.async_read_some(boost::asio::buffer(out_.buffer.data() + out_.size, kBufferBytes - out_.size),
                         [self = shared_from_this()](const error_code& error, std::size_t num_bytes) {
                           if (self->is_closed_ || self->is_lingering_) return;
                           if (error) return self->linger();
                           self->out_.size += num_bytes;
                           self->judge_grpc();
                         });
}

void Relay::judge_grpc() {
  const auto now = Clock::now();
  const auto scanned =
      out_.scanner.scan(out_.bytes(), [&](const Frame& frame) { return calm_.sent(frame, now); });
  if (scanned.verdict == FrameVerdict::kRefuse) is_refused_ = true;
  if (scanned.num_passed > 0) return to_client(scanned.num_passed, 0);
  is_refused_ ? refuse() : read_grpc();
}

void Relay::to_client(std::size_t num_bytes, std::size_t num_sent) {
  is_sending_ = true;
  client_.write_some(boost::asio::buffer(out_.buffer.data() + num_sent, num_bytes - num_sent),
                     [self = shared_from_this(), num_bytes, num_sent](const error_code& error, std::size_t num_more) {
                       self->is_sending_ = false;
                       if (self->is_closed_) return;
                       if (error) return self->close();
                       const std::size_t sum = num_sent + num_more;
                       if (sum < num_bytes) return self->to_client(num_bytes, sum);
                       self->out_.forget(num_bytes);
                       if (self->is_refused_ && self->out_.scanner.is_between_frames()) return self->refuse();
                       self->read_grpc();
                     });
}

void Relay::watch_messages() {
  if (is_looking_ || !calm_.messages().are_awaited()) return;
  is_looking_ = true;
  look_.expires_after(kLook);
  look_.async_wait([self = shared_from_this()](const error_code& error) {
    self->is_looking_ = false;
    if (error || self->is_closed_ || self->is_refused_ || self->is_lingering_) return;
    self->end_late_calls();
    // A frame that does not end lets no call end.
    const auto now = Clock::now();
    LateMessages& messages = self->calm_.messages();
    if (messages.late(now) && now - messages.first_deadline() > self->context_.limits.body_timeout) {
      return self->refuse();
    }
    self->watch_messages();
  });
}

// Between two frames of the client; otherwise it is called again.
void Relay::end_late_calls() {
  const auto now = Clock::now();
  error_code error;
  inner_.non_blocking(true, error);
  while (!is_passing_ && in_.scanner.is_between_frames()) {
    const std::optional<std::uint32_t> stream = calm_.messages().late(now);
    if (!stream) return;
    std::array<char, FrameScanner::kHeadBytes> end{};
    end[4] = 1;  // DATA without bytes, the last (RFC 9113, 6.1)
    for (std::size_t i = 0; i < 4; ++i) end[5 + i] = static_cast<char>(*stream >> (24 - 8 * i));
    const std::size_t num_bytes = inner_.write_some(boost::asio::buffer(end), error);
    if (error == boost::asio::error::would_block) return;
    if (error || num_bytes < end.size()) return refuse();
    calm_.messages().end(*stream);
  }
}

void Relay::set_deadline(std::chrono::milliseconds time) {
  deadline_.expires_after(time);
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->close();
  });
}

void Relay::refuse() {
  is_refused_ = true;
  // A client that takes nothing is not told either.
  if (!is_lingering_) set_deadline(http::kLingerTime);
  if (is_lingering_ || is_sending_ || !out_.scanner.is_between_frames()) return;
  is_lingering_ = true;  // so that reads under way end
  look_.cancel();
  ++context_.metrics.num_calmed;
  error_code ignored;
  inner_.close(ignored);
  calm_.end(Clock::now());
  const std::uint32_t last = calm_.last_stream();
  constexpr char kGoaway = 7, kEnhanceYourCalm = 11;
  goaway_ = {0, 0, 8, kGoaway};  // RFC 9113, 6.8
  for (int i = 0; i < 4; ++i) goaway_[static_cast<std::size_t>(9 + i)] = static_cast<char>(last >> (24 - 8 * i));
  goaway_[16] = kEnhanceYourCalm;
  say_goaway(0);
}

void Relay::say_goaway(std::size_t num_sent) {
  client_.write_some(boost::asio::buffer(goaway_.data() + num_sent, goaway_.size() - num_sent),
                     [self = shared_from_this(), num_sent](const error_code& error, std::size_t num_more) {
                       if (self->is_closed_) return;
                       if (error) return self->close();
                       const std::size_t sum = num_sent + num_more;
                       sum < self->goaway_.size() ? self->say_goaway(sum) : self->linger();
                     });
}

void Relay::linger() {
  is_lingering_ = true;
  look_.cancel();
  pause_.cancel();
  set_deadline(http::kLingerTime);
  client_.cancel();  // a read of the client may be under way
  client_.end_sending([self = shared_from_this()](const error_code& error) {
    if (self->is_closed_) return;
    error ? self->close() : self->throw_away();
  });
}

void Relay::throw_away() {
  client_.read_some(boost::asio::buffer(in_.buffer),
                    [self = shared_from_this()](const error_code& error, std::size_t num_bytes) {
                      if (self->is_closed_) return;
                      self->lingered_bytes_ += num_bytes;
                      const bool is_over = error && error != boost::asio::error::operation_aborted;
                      if (is_over || self->lingered_bytes_ > http::kMaxLingerBytes) return self->close();
                      self->throw_away();
                    });
}

void Relay::close() {
  if (std::exchange(is_closed_, true)) return;
  deadline_.cancel();
  pause_.cancel();
  look_.cancel();
  error_code ignored;
  inner_.close(ignored);
  client_.close();
}

}  // namespace kvasir::server::carriers
