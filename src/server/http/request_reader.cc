#include "server/http/request_reader.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <charconv>
#include <limits>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::http {
namespace {

namespace beast_http = boost::beast::http;

std::string_view to_string_view(boost::beast::string_view text) { return {text.data(), text.size()}; }
std::string to_string(boost::beast::string_view text) { return std::string(to_string_view(text)); }

ApiError malformed(std::string_view what) {
  return {400, fmt::format("malformed HTTP request: {}", what), {}, "bad_http"};
}

// The host in the absolute form that proxies send; empty for "/path?query".
std::string_view authority_of(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (!target.starts_with(kScheme)) return {};
  target.remove_prefix(kScheme.size());
  return target.substr(0, target.find_first_of("/?"));
}

// Without the query.
std::string path_of(std::string_view target) {
  if (const std::string_view authority = authority_of(target); !authority.empty()) {
    target.remove_prefix(static_cast<std::size_t>(authority.end() - target.begin()));
  }
  const std::string_view path = target.substr(0, target.find('?'));
  return path.empty() ? "/" : std::string(path);
}

std::string query_of(std::string_view target) {
  const std::size_t mark = target.find('?');
  return mark == target.npos ? std::string() : std::string(target.substr(mark + 1));
}

bool has_bare_line_feed(std::string_view text) {
  for (std::size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return true;
  }
  return false;
}

}  // namespace

RequestReader::RequestReader(const Limits& limits, const Router& router)
    : limits_(limits), router_(router) {
  parser_.header_limit(static_cast<std::uint32_t>(limits.header_bytes.max));
  parser_.body_limit(std::numeric_limits<std::uint64_t>::max());  // which limit holds tells the path
}

ApiResult<RequestReader::Progress> RequestReader::take(std::string_view input, std::size_t& consumed) {
  consumed = 0;
  while (!touched_ && input.substr(consumed).starts_with("\r\n")) consumed += 2;  // RFC 9112, 2.2
  constexpr char kTlsHandshake = 0x16;  // the type of a TLS client's first record (RFC 8446, 5.1)
  if (!touched_ && input.starts_with(kTlsHandshake)) {
    return std::unexpected(malformed("a TLS handshake; this port speaks http, not https"));
  }
  while (!parser_.is_done()) {
    const std::string_view rest = input.substr(consumed);
    if (rest.empty() || (!touched_ && rest == "\r")) break;
    touched_ = true;
    boost::beast::error_code error;
    const std::size_t taken = parser_.put(boost::asio::buffer(rest.data(), rest.size()), error);
    consumed += taken;
    has_request_line_ |= taken > 0;
    if (parser_.is_header_done() && !std::exchange(header_checked_, true)) KVASIR_CHECKED(check_header());
    if (error == beast_http::error::need_more) {
      // Only the line of a chunk or the trailers wait whole; a body is consumed as it comes.
      if (header_checked_ && std::ssize(rest) > limits_.header_bytes.max) {
        return std::unexpected(malformed("endless chunk line"));
      }
      if (header_checked_ && has_bare_line_feed(rest)) {
        return std::unexpected(malformed("a line of a chunk that ends with a bare LF"));
      }
      break;
    }
    if (error) return std::unexpected(refusal(error));
  }
  if (parser_.is_done()) return Progress::kComplete;
  return header_checked_ ? Progress::kBody : Progress::kHeader;
}

ApiError RequestReader::refusal(const boost::beast::error_code& error) const {
  if (error == beast_http::error::header_limit) {
    const Limit& limit = has_request_line_ ? limits_.header_bytes : limits_.request_line_bytes;
    return beyond(limit);
  }
  if (error == beast_http::error::body_limit) {
    const Limit& limit = body_limit();
    const std::string_view length = to_string_view(parser_.get()[beast_http::field::content_length]);
    std::int64_t num_bytes = 0;
    const auto [end, unread] = std::from_chars(length.data(), length.data() + length.size(), num_bytes);
    return length.empty() || unread != std::errc() ? beyond(limit) : beyond(limit, num_bytes, {});
  }
  return malformed(error.message());
}

ApiStatus RequestReader::check_header() {
  const auto& message = parser_.get();
  const auto line_bytes = static_cast<std::int64_t>(message.target().size() + message.method_string().size() +
                                                    std::string_view("  HTTP/1.1").size());
  if (line_bytes > limits_.request_line_bytes.max) {
    return std::unexpected(beyond(limits_.request_line_bytes, line_bytes));
  }
  head_.method = to_string(message.method_string());
  head_.path = router_.canonical_path(path_of(to_string(message.target())));
  head_.query = query_of(to_string(message.target()));
  std::int64_t num_hosts = 0, num_origins = 0;
  bool has_other_coding = false;
  boost::beast::string_view content_coding;
  for (const auto& field : message) {
    head_.headers.push_back({to_string(field.name_string()), to_string(field.value())});
    num_hosts += field.name() == beast_http::field::host;
    num_origins += field.name() == beast_http::field::origin;
    if (field.name() == beast_http::field::content_encoding &&
        !boost::beast::iequals(field.value(), "identity")) {
      content_coding = field.value();
    }
    has_other_coding |= field.name() == beast_http::field::transfer_encoding &&
                        !boost::beast::iequals(field.value(), "chunked");
  }
  if (std::ssize(head_.headers) > limits_.header_count.max) {
    return std::unexpected(beyond(limits_.header_count, std::ssize(head_.headers)));
  }
  if (has_other_coding) return std::unexpected(malformed("a transfer coding other than chunked"));
  if (num_hosts > 1) return std::unexpected(malformed("more than one Host"));
  if (num_origins > 1) return std::unexpected(malformed("more than one Origin"));
  if (num_hosts == 0 && message.version() == 11) return std::unexpected(malformed("no Host"));
  // The host of an absolute target goes before the header's (RFC 9112, 3.2.2).
  if (const std::string_view authority = authority_of(to_string_view(message.target())); !authority.empty()) {
    for (Header& header : head_.headers) {
      if (boost::beast::iequals(header.name, "host")) header.value = authority;
    }
  }
  if (!content_coding.empty()) {
    return std::unexpected(ApiError{
        415,
        fmt::format("Content-Encoding must be identity, got {}", printable(to_string_view(content_coding))),
        {},
        "unsupported_encoding"});
  }
  KVASIR_CHECKED(limit_body());
  const auto expect = message[beast_http::field::expect];
  expects_continue_ = boost::beast::iequals(expect, "100-continue");
  if (!expect.empty() && !expects_continue_) {
    return std::unexpected(ApiError{417, "the only expectation this server meets is 100-continue"});
  }
  return {};
}

ApiStatus RequestReader::limit_body() {
  takes_file_ = router_.takes_file(head_);
  const auto max = static_cast<std::uint64_t>(body_limit().max);
  if (parser_.content_length() && *parser_.content_length() > max) {
    return std::unexpected(refusal(make_error_code(beast_http::error::body_limit)));
  }
  parser_.body_limit(max);
  if (!takes_file_ && parser_.content_length()) parser_.get().body().reserve(*parser_.content_length());
  return {};
}

std::string RequestReader::take_body() {
  std::string taken = std::exchange(parser_.get().body(), {});
  num_taken_bytes_ += std::ssize(taken);
  return taken;
}

Request RequestReader::take_request() {
  head_.body = std::move(parser_.get().body());
  return std::move(head_);
}

}  // namespace kvasir::server::http
