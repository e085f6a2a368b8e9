#include "server/observe/tracing/collector_client.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::observe {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMaxReplyBytes = 64 << 10;

std::unexpected<Error> no_reply(std::string_view step, const error_code& error) {
  const bool late = error == asio::error::timed_out;
  return make_error(ErrorKind::kUnavailable,
                    fmt::format("{}: {}", step, late ? "no answer in time" : error.message()));
}

// Seconds, as every server in practice gives them; a date counts as none.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view text) {
  constexpr std::int64_t kMaxSeconds = 24 * 3600;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return {};
  return std::chrono::seconds(std::min(seconds, kMaxSeconds));
}

std::unique_ptr<ssl::context> make_tls(const std::string& ca_file, error_code& error) {
  auto tls = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(tls->native_handle(), TLS1_2_VERSION);
  tls->set_verify_mode(ssl::verify_peer);
  if (ca_file.empty()) {
    tls->set_default_verify_paths(error);
  } else {
    tls->load_verify_file(ca_file, error);
  }
  return tls;
}

}  // namespace

CollectorClient::CollectorClient(Options options, std::unique_ptr<ssl::context> tls)
    : options_(std::move(options)), tls_(std::move(tls)) {}

Result<std::unique_ptr<CollectorClient>> CollectorClient::create(Options options) {
  std::unique_ptr<ssl::context> tls;
  if (options.url.is_https) {
    // OpenSSL says nothing of a file that cannot be opened.
    if (!options.ca_file.empty() && !std::ifstream(options.ca_file).is_open()) {
      return make_error(
          ErrorKind::kBadFile,
          fmt::format("{}: cannot be read: {}", printable_line(options.ca_file), std::strerror(errno)));
    }
    error_code error;
    tls = make_tls(options.ca_file, error);
    if (error) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: holds no certificates in PEM: {}",
                                                         printable_line(options.ca_file), error.message()));
    }
  }
  return std::unique_ptr<CollectorClient>(new CollectorClient(std::move(options), std::move(tls)));
}

void CollectorClient::end_by(Clock::time_point when) {
  end_by_ = when;
  asio::post(*io_, [] {});  // wakes whoever runs it
}

bool CollectorClient::run_until(const std::function<bool()>& is_done) {
  while (!is_done()) {
    const Clock::time_point deadline = std::min(deadline_, end_by_.load());
    if (Clock::now() >= deadline) return false;
    io_->run_one_until(deadline);
  }
  return true;
}

template <class Stream, class Start>
error_code CollectorClient::run(Stream& stream, Start&& start) {
  std::optional<error_code> result;
  start([&result](const error_code& error, const auto&...) { result = error; });
  if (run_until([&result] { return result.has_value(); })) return *result;
  error_code ignored;
  boost::beast::get_lowest_layer(stream).close(ignored);
  while (!result) io_->run_one();  // at once, because the socket is closed
  return asio::error::timed_out;
}

Result<std::vector<HostLookup::Endpoint>> CollectorClient::find_host() {
  lookup_.begin(options_.url.host, options_.url.port);
  std::optional<HostLookup::Result> found;
  const bool in_time = run_until([&] {
    found = lookup_.take_result();
    return found.has_value();
  });
  if (!in_time) return no_reply("looking the host up", asio::error::timed_out);
  if (found->error) return no_reply("looking the host up", found->error);
  return std::move(found->endpoints);
}

template <class Stream>
Result<CollectorReply> CollectorClient::exchange(Stream& stream, std::string_view content_type,
                                                 std::string_view body) {
  beast_http::request<beast_http::span_body<const char>> request(beast_http::verb::post, options_.url.target,
                                                                 11);
  for (const http::Header& header : options_.headers) request.set(header.name, header.value);
  request.set(beast_http::field::host, options_.url.authority());
  request.set(beast_http::field::user_agent, options_.user_agent);
  request.set(beast_http::field::content_type,
              boost::beast::string_view(content_type.data(), content_type.size()));
  request.set(beast_http::field::connection, "close");
  request.body() = boost::beast::span<const char>(body.data(), body.size());
  request.prepare_payload();
  error_code error =
      run(stream, [&](auto done) { beast_http::async_write(stream, request, std::move(done)); });
  if (error) return no_reply("sending", error);
  boost::beast::flat_buffer buffer;
  beast_http::response_parser<beast_http::string_body> parser;
  parser.body_limit(kMaxReplyBytes);
  error =
      run(stream, [&](auto done) { beast_http::async_read_header(stream, buffer, parser, std::move(done)); });
  if (error) return no_reply("waiting for the answer", error);
  CollectorReply reply{.status = static_cast<int>(parser.get().result_int()), .body = {}};
  const auto retry_after = parser.get()[beast_http::field::retry_after];
  reply.retry_after = parse_retry_after({retry_after.data(), retry_after.size()});
  error = run(stream, [&](auto done) { beast_http::async_read(stream, buffer, parser, std::move(done)); });
  if (!error) reply.body = std::move(parser.get().body());
  return reply;
}

Result<CollectorReply> CollectorClient::exchange_over_tls(const std::vector<HostLookup::Endpoint>& endpoints,
                                                          std::string_view content_type,
                                                          std::string_view body) {
  ssl::stream<tcp::socket> stream(*io_, *tls_);
  const std::string& host = options_.url.host;
  stream.set_verify_callback(ssl::host_name_verification(host));
  error_code not_an_address;
  asio::ip::make_address(host, not_an_address);
  if (not_an_address) SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
  error_code error =
      run(stream, [&](auto done) { asio::async_connect(stream.next_layer(), endpoints, std::move(done)); });
  if (error) return no_reply("connecting", error);
  error = run(stream, [&](auto done) { stream.async_handshake(ssl::stream_base::client, std::move(done)); });
  if (error) return no_reply("TLS", error);
  return exchange(stream, content_type, body);
}

Result<CollectorReply> CollectorClient::post(std::string_view content_type, std::string_view body,
                                             Clock::time_point deadline) {
  deadline_ = deadline;
  KVASIR_TRY(const auto endpoints, find_host());
  if (tls_ != nullptr) return exchange_over_tls(endpoints, content_type, body);
  tcp::socket socket(*io_);
  const error_code error =
      run(socket, [&](auto done) { asio::async_connect(socket, endpoints, std::move(done)); });
  if (error) return no_reply("connecting", error);
  return exchange(socket, content_type, body);
}

}  // namespace kvasir::server::observe
