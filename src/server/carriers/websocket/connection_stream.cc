#include "server/carriers/websocket/connection_stream.h"

#include <utility>

namespace kvasir::server::carriers {

void ConnectionStream::linger(std::function<void()> done) {
  auto linger =
      std::make_shared<Linger>(Linger{.time = boost::asio::steady_timer(get_executor(), http::kLingerTime),
                                      .done = std::move(done),
                                      .scratch = {}});
  linger->time.async_wait([this, linger](const boost::system::error_code& error) {
    if (!error && linger->done) connection_.close();  // which ends the reading
  });
  connection_.end_sending([this, linger](const boost::system::error_code&) { read_on(linger); });
}

void ConnectionStream::read_on(std::shared_ptr<Linger> linger) {
  connection_.read_some(boost::asio::buffer(linger->scratch),
                        [this, linger](const boost::system::error_code& error, std::size_t num_bytes) {
                          linger->num_bytes += num_bytes;
                          if (!error && linger->num_bytes <= http::kMaxLingerBytes) return read_on(linger);
                          linger->time.cancel();
                          connection_.close();
                          std::exchange(linger->done, nullptr)();
                        });
}

}  // namespace kvasir::server::carriers
