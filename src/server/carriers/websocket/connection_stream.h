// A Connection in the form that Beast's WebSocket reads from and writes to.
#pragma once

#include <array>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/role.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "server/http/connection.h"
#include "server/http/min_transfer_rate.h"

namespace kvasir::server::carriers {

// Models Asio's AsyncReadStream and AsyncWriteStream.
//
// Thread safety: as Connection.
class ConnectionStream {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Clock = std::chrono::steady_clock;

  // `early` is what has been read already.
  ConnectionStream(http::Connection connection, std::string early, const http::MinTransferRate& write_rate)
      : connection_(std::move(connection)), early_(std::move(early)), write_rate_(write_rate) {}

  executor_type get_executor() { return connection_.executor(); }
  // Something is to be sent after a time of nothing.
  void begin_writing() { write_rate_.begin(Clock::now()); }
  // Until when the client must take more.
  Clock::time_point write_deadline() const { return write_rate_.deadline(); }
  void close() { connection_.close(); }
  // Sends no more, and is done when the client has closed too, or has had its time to see why.
  void linger(std::function<void()> done);

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& into) {
          read(first_of<boost::asio::mutable_buffer>(into), shared(std::move(handler)));
        },
        token, buffers);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto handler, const Buffers& from) {
          write(first_of<boost::asio::const_buffer>(from), shared(std::move(handler)));
        },
        token, buffers);
  }

 private:
  using Moved = http::Connection::Moved;

  template <class Buffer, class Buffers>
  static Buffer first_of(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto it = boost::asio::buffer_sequence_begin(buffers); it != end; ++it) {
      if (const Buffer buffer = *it; buffer.size() > 0) return buffer;
    }
    return {};
  }

  // Beast's handlers can be moved only.
  template <class Handler>
  static Moved shared(Handler handler) {
    return
        [handler = std::make_shared<Handler>(std::move(handler))](
            const boost::system::error_code& error, std::size_t num_bytes) { (*handler)(error, num_bytes); };
  }

  void read(boost::asio::mutable_buffer buffer, Moved moved) {
    if (early_.empty()) return connection_.read_some(buffer, std::move(moved));
    const std::size_t size = boost::asio::buffer_copy(buffer, boost::asio::buffer(early_));
    early_.erase(0, size);
    boost::asio::post(get_executor(), [moved = std::move(moved), size] { moved({}, size); });
  }

  void write(boost::asio::const_buffer buffer, Moved moved) {
    connection_.write_some(buffer, [this, moved = std::move(moved)](const boost::system::error_code& error,
                                                                    std::size_t num_bytes) {
      write_rate_.moved(static_cast<std::int64_t>(num_bytes), Clock::now());
      moved(error, num_bytes);
    });
  }

  struct Linger {
    boost::asio::steady_timer time;
    std::function<void()> done;
    std::array<char, 4096> scratch;
    std::size_t num_bytes = 0;
  };
  void read_on(std::shared_ptr<Linger> linger);

  http::Connection connection_;
  std::string early_;
  http::MinTransferRate write_rate_;
};

// Beast calls this when the closing handshake is done, or time is up.
inline void teardown(boost::beast::role_type, ConnectionStream& stream, boost::system::error_code& error) {
  stream.close();
  error = {};
}
template <class Handler>
void async_teardown(boost::beast::role_type, ConnectionStream& stream, Handler&& handler) {
  // Beast's handlers can be moved only.
  auto shared = std::make_shared<std::decay_t<Handler>>(std::forward<Handler>(handler));
  stream.linger([shared] { (*shared)(boost::system::error_code()); });
}
inline void beast_close_socket(ConnectionStream& stream) { stream.close(); }

}  // namespace kvasir::server::carriers
