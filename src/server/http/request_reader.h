// Turns the bytes of a connection into one request, refusing what is malformed or too large.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/http/growing_body.h"
#include "server/http/message.h"
#include "server/http/router.h"
#include "server/limits.h"

namespace kvasir::server::http {

// HTTP/1.0 and 1.1 (RFC 9112). Stricter than Beast's parser where leniency lets two parties read one message
// differently: no transfer coding but chunked, no length beside it, one Host.
//
// Thread safety: none; one per request.
class RequestReader {
 public:
  enum class Progress : std::uint8_t { kHeader, kBody, kComplete };

  RequestReader(const Limits& limits, const Router& router);

  // Reads from the bytes that are not yet consumed. Give it again what it left, with more behind. After an
  // error the connection cannot be used for further requests.
  ApiResult<Progress> take(std::string_view input, std::size_t& consumed);

  // Nothing of a request has arrived.
  bool untouched() const { return !touched_; }
  // Whether the client waits for "100 Continue" before it sends the body. Requires: the header is complete.
  bool expects_continue() const { return expects_continue_; }
  // As far as it has come and was not taken.
  std::string_view body() const { return parser_.get().body(); }
  std::string take_body();
  std::int64_t body_bytes() const { return num_taken_bytes_ + std::ssize(parser_.get().body()); }  // that came
  bool is_complete() const { return parser_.is_done(); }

  // Whether the body is a file. Requires: the header is complete.
  bool takes_file() const { return takes_file_; }

  // The request without its body. Empty until the header is complete.
  const Request& head() const { return head_; }

  // With its body as far as that has come.
  Request take_request();
  // Each requires: complete.
  bool keep_alive() const { return parser_.get().keep_alive(); }
  bool is_http_1_0() const { return parser_.get().version() == 10; }

 private:
  ApiStatus check_header();
  ApiStatus limit_body();
  const Limit& body_limit() const { return takes_file_ ? limits_.file_bytes : limits_.body_bytes; }
  ApiError refusal(const boost::beast::error_code& error) const;

  const Limits& limits_;
  const Router& router_;  // tells a path's usual form
  boost::beast::http::request_parser<GrowingBody> parser_;
  Request head_;  // with the headers as they were before the body: trailers do not count
  bool touched_ = false;
  bool has_request_line_ = false;
  bool header_checked_ = false;
  bool expects_continue_ = false;
  bool takes_file_ = false;
  std::int64_t num_taken_bytes_ = 0;  // of the body
};

}  // namespace kvasir::server::http
