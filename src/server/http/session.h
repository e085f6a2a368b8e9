// One client connection: reads requests, sends their answers in order.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/memory_reserve.h"
#include "server/http/connection.h"
#include "server/http/min_transfer_rate.h"
#include "server/http/request_reader.h"
#include "server/http/session_context.h"

namespace kvasir::server::http {

class Http1ResponseWriter;

// One request is answered at a time; what a client pipelines behind it waits in a bounded buffer, and so does
// the next request until the answer before it has left. While an answer is made the session keeps reading, so
// that a client who leaves ends the work for it at once; one who closes only its sending side gets its
// answer.
//
// Thread safety: everything runs on the socket's executor, a strand. Lives as long as an operation or an
// unfinished response holds it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `tls` null: the connection has none.
  Session(boost::asio::ip::tcp::socket socket, ConnectionCounter::Slot slot, boost::asio::ssl::context* tls,
          const SessionContext& context);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  boost::asio::any_io_executor executor() { return connection_.executor(); }
  void start();

 private:
  friend class Http1ResponseWriter;

  enum class State : std::uint8_t {
    kShaking,    // hands, with TLS
    kReading,    // waiting for a request, or in the middle of one
    kAnswering,  // until the last byte of the answer has left
    kUpgrading,  // to another protocol, when the read under way has ended
    kLingering,  // answered and done; reading on so that the client gets to see the answer
    kClosed,
  };

  // Work that runs short of memory ends the connection and nothing else.
  template <class Work>
  void attempt(const Work& work) {
    const MemoryReserve::Spared spared;
    try {
      work();
    } catch (const std::exception&) {
      give_up();
    }
  }
  // Takes no memory. A client whose answer has not begun gets a 503.
  void give_up();

  // Reading.
  void shake_hands();
  void on_handshake(const boost::system::error_code& error);
  void begin();
  void read();
  void on_read(const boost::system::error_code& error, std::size_t num_bytes);
  // While an answer is made: as far as the buffer goes.
  void read_ahead();
  // Ends an answer whose client is seen to be gone while nothing is read.
  void watch_unread();
  void on_half_closed();
  void advance();
  // The next bytes of a file are read when the sink has taken these.
  void pass_body();
  void on_body_passed(const ApiStatus& status);
  void await_body();
  void refuse(const ApiError& error);
  ApiResult<auth::Tenant> admit(const Request& request) const;
  void answer_request();
  // The connection goes on in another protocol.
  void begin_upgrade(Request request);
  void upgrade();
  // The request is answered: whoever sees that may send the next at once, here or elsewhere. The
  // next body is nobody's until its head tells.
  void give_body_back() {
    body_memory_.set(0);
    body_memory_.belong_to({});
  }
  void set_read_deadline(RequestReader::Progress progress);
  // A time limit, up to an eighth longer.
  std::chrono::milliseconds spread(std::chrono::milliseconds time) const;
  void set_deadline(std::chrono::steady_clock::time_point when);
  void on_deadline();
  std::string what_is_late() const;

  // Writing.
  void send(std::string bytes);
  void note_memory();
  // Calls back once when nothing is left unsent; not after the connection is gone.
  void when_sent(std::function<void()> callback);
  std::size_t unsent_bytes() const { return writing_.size() - written_ + outgoing_.size(); }
  void write_some();
  void on_written(const boost::system::error_code& error, std::size_t num_bytes);
  void end_answer(bool keep_alive, observe::AccessRecord record);
  void on_answered();

  void abort(AbortCause cause);
  void linger();
  void close();

  static constexpr std::size_t kReadBytes = 16 << 10;
  static constexpr std::size_t kMaxPipelinedBytes = 64 << 10;

  ConnectionCounter::Slot slot_;
  Connection connection_;
  const SessionContext& context_;
  RequestMemory::Share connection_memory_{context_.memory};  // with what is not yet sent
  RequestMemory::Share body_memory_{context_.memory};
  boost::asio::steady_timer deadline_;  // of reading
  boost::asio::steady_timer stall_;     // of writing

  State state_ = State::kShaking;
  std::unique_ptr<RequestReader> reader_;
  std::string input_;  // read, not yet consumed
  std::array<char, kReadBytes> read_buffer_;
  bool reading_ = false;
  bool said_continue_ = false;
  bool may_send_body_ = false;  // of this request: who sends it has been asked
  bool input_ended_ = false;    // the client sends no more; asking the socket again would wait for ever
  bool will_advance_ = false;   // posted: what is pipelined is looked at before the connection closes
  bool is_watched_ = false;     // an error wakes the session though nothing is read
  std::shared_ptr<BodySink> sink_;  // of the body that comes; null: it stays in memory
  std::optional<Request> upgrade_;
  std::chrono::steady_clock::time_point request_began_;  // its header, then its body
  // The body's bytes so far, and how fast more must come; none before the body begins.
  std::int64_t timed_body_bytes_ = 0;
  std::optional<MinTransferRate> body_rate_;
  std::size_t lingered_bytes_ = 0;

  std::shared_ptr<Http1ResponseWriter> answer_;
  bool keep_alive_ = false;       // after this answer
  observe::AccessRecord record_;  // of the answer that is over and on its way
  std::chrono::steady_clock::time_point answered_at_;
  std::string outgoing_;  // waits for the write under way
  std::function<void()> sent_callback_;
  std::string writing_;
  std::size_t written_ = 0;     // of writing_; 0 when that is empty
  MinTransferRate write_rate_;  // of what is unsent
};

}  // namespace kvasir::server::http
