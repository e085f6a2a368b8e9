// Between a client's connection and gRPC.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/carriers/grpc/abandoned_calls.h"
#include "server/carriers/grpc/connection_calm.h"
#include "server/carriers/grpc/frame_scanner.h"
#include "server/http/connection.h"
#include "server/http/session_context.h"

namespace kvasir::server::carriers {

// State that the relays of a port share.
struct RelayShare {
  AbandonedCalls abandoned;
  std::atomic<std::int64_t> num_open{0};
};

// Passes the bytes of one connection on to gRPC, whose library has no bound for resets, and back. It speaks TLS
// where that is asked for, and looks at the frames: a client that asks for too much gets a GOAWAY with
// ENHANCE_YOUR_CALM.
//
// Thread safety: everything runs on the socket's executor, a strand. Lives as long as an operation holds it.
class Relay : public std::enable_shared_from_this<Relay> {
 public:
  using Inner = boost::asio::local::stream_protocol::socket;

  // `inner` is the other end of gRPC's socket; `tls` null: the connection has none.
  Relay(boost::asio::ip::tcp::socket socket, http::ConnectionCounter::Slot slot, Inner inner,
        boost::asio::ssl::context* tls, const http::SessionContext& context, std::shared_ptr<RelayShare> share);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  boost::asio::any_io_executor executor() { return client_.executor(); }
  void start();

 private:
  static constexpr std::size_t kBufferBytes = 8 << 10;
  // Bytes on their way; those behind the passed ones wait for more of their frame, or for leave.
  struct Way {
    explicit Way(std::size_t num_first_bytes) : scanner(num_first_bytes) {}
    std::string_view bytes() const { return {buffer.data(), size}; }
    void forget(std::size_t num_bytes);

    FrameScanner scanner;
    std::array<char, kBufferBytes> buffer;
    std::size_t size = 0;
  };

  void begin();
  // From the client to gRPC.
  void read_client();
  void judge_client();
  void to_grpc(std::size_t num_bytes, std::size_t num_sent, FrameVerdict verdict);
  void go_on(FrameVerdict verdict);
  // And back.
  void read_grpc();
  void judge_grpc();
  void to_client(std::size_t num_bytes, std::size_t num_sent);

  // Calls whose message is late end: gRPC gets the end of their side, and answers.
  void watch_messages();
  void end_late_calls();

  void set_deadline(std::chrono::milliseconds time);
  // With a GOAWAY as soon as a frame has ended.
  void refuse();
  void say_goaway(std::size_t num_sent);
  // The last bytes written leave; the client's further ones are thrown away.
  void linger();
  void throw_away();
  void close();

  http::ConnectionCounter::Slot slot_;
  http::Connection client_;
  Inner inner_;
  const http::SessionContext& context_;
  const std::shared_ptr<RelayShare> share_;
  RequestMemory::Share memory_;
  ConnectionCalm calm_;
  Way in_{FrameScanner::kPrefaceBytes}, out_{0};
  boost::asio::steady_timer deadline_;  // of the handshake and the lingering
  boost::asio::steady_timer pause_;     // until a call may begin
  boost::asio::steady_timer look_;      // for late messages
  bool is_looking_ = false;
  bool is_passing_ = false;             // to gRPC
  bool is_sending_ = false;             // to the client
  bool is_refused_ = false;
  bool is_lingering_ = false;
  bool is_closed_ = false;
  std::array<char, 17> goaway_{};
  std::size_t lingered_bytes_ = 0;
};

}  // namespace kvasir::server::carriers
