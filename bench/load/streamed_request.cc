#include "streamed_request.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <boost/asio/write.hpp>
#include <charconv>
#include <limits>
#include <utility>

namespace kvasir::load {
namespace beast_http = boost::beast::http;
using boost::system::error_code;

namespace {

// `ignore_eos`, so that answers are as long as planned whatever the model says.
std::string head_and_body(const Target& target, const PlannedRequest& planned) {
  const std::string body = fmt::format(
      R"({{"model":"{}","prompt":{},"max_tokens":{},"temperature":0,"ignore_eos":true,"stream":true,)"
      R"("stream_options":{{"include_usage":true}}}})",
      target.model, planned.prompt, planned.max_tokens);
  const std::string key =
      planned.api_key.empty() ? "" : fmt::format("Authorization: Bearer {}\r\n", planned.api_key);
  return fmt::format(
      "POST /v1/completions HTTP/1.1\r\nHost: {}:{}\r\n{}Content-Type: application/json\r\n"
      "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
      target.endpoint.address().to_string(), target.endpoint.port(), key, body.size(), body);
}

std::int32_t integer_or_0(simdjson::simdjson_result<simdjson::dom::element> element) {
  std::int64_t number = 0;
  return element.get(number) == simdjson::SUCCESS ? static_cast<std::int32_t>(number) : 0;
}

}  // namespace

StreamedRequest::StreamedRequest(boost::asio::io_context& io, const Target& target,
                                 const PlannedRequest& planned, Clock::time_point start, double planned_ms,
                                 Done done)
    : socket_(io),
      target_(target),
      start_(start),
      done_(std::move(done)),
      request_(head_and_body(target, planned)) {
  outcome_.planned_ms = planned_ms;
  outcome_.token_ms.reserve(static_cast<std::size_t>(planned.max_tokens));
  parser_.body_limit(std::numeric_limits<std::uint64_t>::max());  // boost::none means 0 in Boost 1.74
}

double StreamedRequest::now_ms() const {
  return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
}

void StreamedRequest::send() {
  outcome_.sent_ms = now_ms();
  socket_.async_connect(target_.endpoint, [self = shared_from_this()](const error_code& error) {
    if (error) return self->end(error.message());
    self->write();
  });
}

void StreamedRequest::write() {
  error_code ignored;
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  // A server that refuses may answer before it has read everything: what it says counts, not that.
  boost::asio::async_write(
      socket_, boost::asio::buffer(request_),
      [self = shared_from_this()](const error_code&, std::size_t) { self->read_head(); });
}

void StreamedRequest::read_head() {
  beast_http::async_read_header(
      socket_, buffer_, parser_, [self = shared_from_this()](const error_code& error, std::size_t) {
        if (error) return self->end(error.message());
        const auto& head = self->parser_.get();
        self->outcome_.status_ms = self->now_ms();
        self->outcome_.status = head.result_int();
        const auto wait = head[beast_http::field::retry_after];
        int seconds = 0;
        if (std::from_chars(wait.data(), wait.data() + wait.size(), seconds).ec == std::errc()) {
          self->outcome_.retry_after_s = seconds;
        }
        self->read_body();
      });
}

void StreamedRequest::read_body() {
  if (parser_.is_done()) {
    if (outcome_.status != 200) return end(fmt::format("status {}", outcome_.status));
    return end(has_finished_ ? "" : "the answer broke off");
  }
  auto& body = parser_.get().body();
  body.data = body_.data();
  body.size = body_.size();
  beast_http::async_read_some(socket_, buffer_, parser_,
                              [self = shared_from_this()](const error_code& error, std::size_t) {
                                if (error && error != beast_http::error::need_buffer)
                                  return self->end(error.message());
                                self->on_body(self->body_.size() - self->parser_.get().body().size);
                                self->read_body();
                              });
}

void StreamedRequest::on_body(std::size_t num_bytes) {
  unread_.append(body_.data(), num_bytes);
  std::size_t begin = 0;
  for (std::size_t end; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line(unread_.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("data: {")) on_event(line.substr(6));
  }
  unread_.erase(0, begin);
}

void StreamedRequest::on_event(std::string_view text) {
  thread_local simdjson::dom::parser parser;
  simdjson::dom::element event;
  if (parser.parse(text.data(), text.size()).get(event) != simdjson::SUCCESS) return;
  simdjson::dom::element usage;
  if (event["usage"].get(usage) == simdjson::SUCCESS && usage.is_object()) {
    outcome_.num_tokens = integer_or_0(usage["completion_tokens"]);
    outcome_.num_cached_tokens = integer_or_0(usage["prompt_tokens_details"]["cached_tokens"]);
  }
  simdjson::dom::element choice;
  if (event["choices"].at(0).get(choice) != simdjson::SUCCESS) return;
  std::string_view piece;
  if (choice["text"].get(piece) == simdjson::SUCCESS && !piece.empty()) outcome_.token_ms.push_back(now_ms());
  has_finished_ = has_finished_ || choice["finish_reason"].is_string();
}

void StreamedRequest::end(std::string error) {
  outcome_.end_ms = now_ms();
  outcome_.error = std::move(error);
  error_code ignored;
  socket_.close(ignored);
  done_(std::move(outcome_));
}

}  // namespace kvasir::load
