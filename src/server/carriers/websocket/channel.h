// One WebSocket: requests of several ids at once, and what becomes of them.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_reserve.h"
#include "server/carriers/websocket/channel_message.h"
#include "server/carriers/websocket/connection_stream.h"
#include "server/http/min_transfer_rate.h"
#include "server/http/output_bound.h"
#include "server/http/session_context.h"

namespace kvasir::server::carriers {

class ChannelResponseWriter;

// The messages are those of channel_message.h. A request is routed and answered as one of HTTP, with the
// headers of the handshake, whose key is looked at again each time. When the client leaves, all its requests
// end. While many answers wait for a slow reader, no more is made for it: it is dropped at the same bound as
// a stream of HTTP.
//
// Thread safety: everything runs on the connection's executor, a strand. Lives as long as an operation or an
// open answer holds it.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // `early` is what came behind the handshake.
  Channel(http::Connection connection, http::ConnectionCounter::Slot slot, std::string early,
          http::Request handshake, const http::SessionContext& context);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  boost::asio::any_io_executor executor() { return stream_.get_executor(); }
  void start();

 private:
  friend class ChannelResponseWriter;
  using CloseCode = boost::beast::websocket::close_code;

  // Reading.
  void read();
  void on_read(const boost::system::error_code& error);
  void watch_message();
  void take(std::string_view text);
  void answer(ChannelMessage message);
  ApiResult<http::Request> request_of(ChannelMessage& message) const;
  void refuse(std::string_view id, const ApiError& error);

  // Writing.
  // Whether a piece of a stream may wait with the others.
  bool takes(std::size_t piece_bytes);
  // `is_piece`: of a stream, or said to who only asks, and so bounded by takes(). Answers in one piece are
  // not: the request memory bounds them.
  void send(std::string message, bool is_piece);
  void write();
  void on_written(const boost::system::error_code& error);
  void watch_reader();
  void when_sent(std::function<void()> callback);
  // And count the request as answered.
  void log_when_sent(observe::AccessRecord record);
  std::int64_t held_bytes() const;
  void note_memory();

  void forget(const std::string& id) { answers_.erase(id); }
  // Says why, once everything is sent.
  void close(CloseCode code);
  void abort(http::AbortCause cause);
  // Short of memory: the connection ends.
  void give_up();
  template <class Work>
  void attempt(const Work& work) {
    const MemoryReserve::Spared spared;
    try {
      work();
    } catch (const std::exception&) {
      give_up();
    }
  }

  static constexpr std::size_t kReadBytes = 16 << 10;

  const http::SessionContext& context_;
  const bool is_secure_;
  const http::ConnectionCounter::Slot slot_;
  const http::Request handshake_;
  RequestMemory::Share memory_{context_.memory};  // with what is not yet sent
  RequestMemory::Share input_memory_{context_.memory};
  boost::beast::websocket::stream<ConnectionStream> stream_;
  boost::asio::steady_timer stall_;     // of writing
  boost::asio::steady_timer deadline_;  // of a message that is not whole

  boost::beast::flat_buffer input_;
  std::map<std::string, std::shared_ptr<ChannelResponseWriter>> answers_;  // that are open, by id
  struct Outgoing {
    std::string text;
    bool is_piece;
  };
  std::deque<Outgoing> outgoing_;  // the first is on its way
  std::size_t unsent_bytes_ = 0;
  std::size_t unsent_piece_bytes_ = 0;
  http::OutputBound output_bound_;
  std::optional<http::MinTransferRate> message_rate_;  // of a message that is not whole
  std::size_t timed_input_bytes_ = 0;
  std::vector<std::function<void()>> sent_callbacks_;
  std::optional<CloseCode> close_code_;
  bool is_closed_ = false;
  http::AbortCause end_cause_ = http::AbortCause::kDisconnected;  // once closed
};

}  // namespace kvasir::server::carriers
