#include "server/observe/health_probe.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <charconv>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::observe {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using Clock = std::chrono::steady_clock;
using ErrorCode = boost::system::error_code;

// Starts one operation and waits until it has ended, or the deadline. One that is late stays in `io` and must
// not be waited for again.
template <class Start>
ErrorCode finish(asio::io_context& io, Clock::time_point deadline, Start start) {
  ErrorCode result = asio::error::timed_out;
  start([&result](const ErrorCode& error, auto&&...) { result = error; });
  io.restart();
  io.run_until(deadline);
  return result;
}

beast_http::request<beast_http::empty_body> make_request(const ServerAddress& address) {
  beast_http::request<beast_http::empty_body> request(beast_http::verb::get, "/health/ready", 11);
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  request.set(beast_http::field::host,
              fmt::format("{}:{}", is_ipv6 ? "[" + address.host + "]" : address.host, address.port));
  request.set(beast_http::field::connection, "close");
  return request;
}

template <class Stream>
ErrorCode exchange(asio::io_context& io, Clock::time_point deadline, Stream& stream,
                   const ServerAddress& address, HealthAnswer& answer) {
  const auto request = make_request(address);
  ErrorCode error = finish(
      io, deadline, [&](auto handler) { beast_http::async_write(stream, request, std::move(handler)); });
  if (error) return error;
  beast::flat_buffer buffer;
  beast_http::response<beast_http::string_body> response;
  error = finish(io, deadline,
                 [&](auto handler) { beast_http::async_read(stream, buffer, response, std::move(handler)); });
  if (error) return error;
  answer = {.status = static_cast<int>(response.result_int()), .body = std::move(response.body())};
  return {};
}

ErrorCode connect(asio::io_context& io, Clock::time_point deadline, beast::tcp_stream& stream,
                  const ServerAddress& address) {
  ErrorCode error;
  const auto endpoints =
      asio::ip::tcp::resolver(io).resolve(address.host, std::to_string(address.port), error);
  if (error) return error;
  return finish(io, deadline, [&](auto handler) { stream.async_connect(endpoints, std::move(handler)); });
}

ErrorCode ask(const ServerAddress& address, Clock::time_point deadline, HealthAnswer& answer) {
  asio::io_context io;
  if (!address.tls) {
    beast::tcp_stream stream(io);
    const ErrorCode error = connect(io, deadline, stream, address);
    return error ? error : exchange(io, deadline, stream, address, answer);
  }
  asio::ssl::context tls(asio::ssl::context::tls_client);
  beast::ssl_stream<beast::tcp_stream> stream(io, tls);
  ErrorCode error = connect(io, deadline, stream.next_layer(), address);
  if (error) return error;
  error = finish(io, deadline, [&](auto handler) {
    stream.async_handshake(asio::ssl::stream_base::client, std::move(handler));
  });
  return error ? error : exchange(io, deadline, stream, address, answer);
}

}  // namespace

Result<ServerAddress> parse_server_url(std::string_view url) {
  const auto wrong = [&] {
    return make_error(ErrorKind::kUsage,
                      fmt::format("a server's URL is like http://127.0.0.1:8080, not '{}'", printable(url)),
                      "url");
  };
  ServerAddress address;
  std::string_view rest = url;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    address.tls = true;
  } else {
    return wrong();
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::size_t host_end = rest.find(':');
  if (rest.starts_with('[')) {
    host_end = rest.find(']');
    if (host_end == rest.npos) return wrong();
    address.host = rest.substr(1, host_end++ - 1);
  } else {
    address.host = rest.substr(0, host_end);
  }
  rest = host_end < rest.size() ? rest.substr(host_end) : std::string_view();
  address.port = address.tls ? 443 : 80;
  if (!rest.empty()) {
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), address.port);
    if (!rest.starts_with(':') || error != std::errc() || end != rest.data() + rest.size()) return wrong();
  }
  if (address.host.empty() || address.host.find('/') != std::string::npos || address.port == 0)
    return wrong();
  return address;
}

Result<HealthAnswer> ask_health(const ServerAddress& address, std::chrono::milliseconds patience) {
  HealthAnswer answer;
  const ErrorCode error = ask(address, Clock::now() + patience, answer);
  if (!error) return answer;
  return make_error(
      ErrorKind::kUnavailable,
      fmt::format("{} port {} does not answer: {}", printable_line(address.host), address.port,
                  error == asio::error::timed_out ? fmt::format("nothing came within {} ms", patience.count())
                                                  : error.message()));
}

}  // namespace kvasir::server::observe
