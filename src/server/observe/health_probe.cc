#include "server/observe/health_probe.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <functional>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::observe {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kReadBytes = 4096;

using Handler = std::function<void(const ErrorCode& error, std::size_t num_bytes)>;

// Reads and writes on a stream of either kind, so that the exchange below is compiled once.
struct Transport {
  std::function<void(asio::mutable_buffer bytes, Handler handler)> read_some;
  std::function<void(asio::const_buffer bytes, Handler handler)> write_some;
};

// Starts one operation and waits until it has ended, or the deadline. One that is late stays in `io` and must
// not be waited for again.
ErrorCode finish(asio::io_context& io, Clock::time_point deadline, const std::function<void(Handler)>& start,
                 std::size_t* num_bytes = nullptr) {
  ErrorCode result = asio::error::timed_out;
  start([&result, num_bytes](const ErrorCode& error, std::size_t count) {
    result = error;
    if (num_bytes != nullptr) *num_bytes = count;
  });
  io.restart();
  io.run_until(deadline);
  return result;
}

std::string request_text(const ServerAddress& address, const ServerQuestion& question) {
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n", question.method,
                                 question.path, is_ipv6 ? "[" + address.host + "]" : address.host, address.port);
  if (!question.api_key.empty()) head += fmt::format("Authorization: Bearer {}\r\n", question.api_key);
  if (!question.body.empty()) {
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", question.body.size());
  }
  return head + "\r\n" + question.body;
}

ErrorCode exchange(asio::io_context& io, Clock::time_point deadline, const Transport& transport,
                   const ServerAddress& address, const ServerQuestion& question, ServerAnswer& answer) {
  const std::string request = request_text(address, question);
  for (std::size_t sent = 0, count = 0; sent < request.size(); sent += count) {
    const auto rest = asio::buffer(request.data() + sent, request.size() - sent);
    const auto write = [&](Handler handler) { transport.write_some(rest, std::move(handler)); };
    if (const ErrorCode error = finish(io, deadline, write, &count)) return error;
  }
  beast_http::response_parser<beast_http::string_body> parser;
  parser.eager(true);
  beast::flat_buffer buffer;
  while (!parser.is_done()) {
    std::size_t count = 0;
    const auto room = buffer.prepare(kReadBytes);
    const auto read = [&](Handler handler) { transport.read_some(room, std::move(handler)); };
    ErrorCode error = finish(io, deadline, read, &count);
    if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
      parser.put_eof(error);
      if (!error && parser.is_done()) break;
      return error ? error : asio::error::eof;
    }
    if (error) return error;
    buffer.commit(count);
    buffer.consume(parser.put(buffer.data(), error));
    if (error && error != beast_http::error::need_more) return error;
  }
  answer = {.status = static_cast<int>(parser.get().result_int()), .body = std::move(parser.get().body())};
  return {};
}

template <class Stream>
Transport transport_of(Stream& stream) {
  return {.read_some = [&stream](asio::mutable_buffer bytes,
                                 Handler handler) { stream.async_read_some(bytes, std::move(handler)); },
          .write_some = [&stream](asio::const_buffer bytes,
                                  Handler handler) { stream.async_write_some(bytes, std::move(handler)); }};
}

ErrorCode connect(asio::io_context& io, Clock::time_point deadline, tcp::socket& socket,
                  const ServerAddress& address) {
  ErrorCode error;
  const auto endpoints = tcp::resolver(io).resolve(address.host, std::to_string(address.port), error);
  if (error) return error;
  return finish(io, deadline, [&](Handler handler) {
    asio::async_connect(socket, endpoints,
                        [handler](const ErrorCode& e, const tcp::endpoint&) { handler(e, 0); });
  });
}

ErrorCode ask(const ServerAddress& address, const ServerQuestion& question, Clock::time_point deadline,
              ServerAnswer& answer) {
  asio::io_context io;
  if (!address.tls) {
    tcp::socket socket(io);
    const ErrorCode error = connect(io, deadline, socket, address);
    return error ? error : exchange(io, deadline, transport_of(socket), address, question, answer);
  }
  asio::ssl::context tls(asio::ssl::context::tls_client);
  asio::ssl::stream<tcp::socket> stream(io, tls);
  if (!question.api_key.empty()) {
    ErrorCode no_paths;
    static_cast<void>(tls.set_default_verify_paths(no_paths));
    stream.set_verify_mode(asio::ssl::verify_peer);
    stream.set_verify_callback(asio::ssl::host_name_verification(address.host));
  }
  ErrorCode error = connect(io, deadline, stream.next_layer(), address);
  if (error) return error;
  error = finish(io, deadline, [&](Handler handler) {
    stream.async_handshake(asio::ssl::stream_base::client, [handler](const ErrorCode& e) { handler(e, 0); });
  });
  return error ? error : exchange(io, deadline, transport_of(stream), address, question, answer);
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

Result<ServerAnswer> ask_health(const ServerAddress& address, std::chrono::milliseconds timeout) {
  return ask_server(address, {.path = "/health/ready"}, timeout);
}

Result<ServerAnswer> ask_server(const ServerAddress& address, const ServerQuestion& question,
                                std::chrono::milliseconds timeout) {
  ServerAnswer answer;
  const ErrorCode error = ask(address, question, Clock::now() + timeout, answer);
  if (!error) return answer;
  return make_error(
      ErrorKind::kUnavailable,
      fmt::format("{} port {} does not answer: {}", printable_line(address.host), address.port,
                  error == asio::error::timed_out ? fmt::format("nothing came within {} ms", timeout.count())
                                                  : error.message()));
}

}  // namespace kvasir::server::observe
