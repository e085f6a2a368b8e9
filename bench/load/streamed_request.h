// One request of a load: sent, its streamed answer read, its times taken.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload.h"

namespace kvasir::load {

using Clock = std::chrono::steady_clock;

struct Target {
  boost::asio::ip::tcp::endpoint endpoint;
  std::string model;
};

// Times are milliseconds after the start of the load.
struct RequestOutcome {
  double planned_ms = 0.0;  // when it should have been sent
  double sent_ms = 0.0;
  double status_ms = 0.0;              // the head of the answer was there
  std::vector<double> token_ms;        // a piece of text was there: one each, which is a token or several
  double end_ms = 0.0;                 // the answer had ended
  int status = 0;                      // 0: none came
  std::int32_t num_tokens = 0;         // that the server says it has made
  std::int32_t num_cached_tokens = 0;  // of the prompt, that it says it need not compute
  std::optional<int> retry_after_s;
  std::string error;  // empty: the answer came whole
};

// Asks for one completion over a connection of its own. Calls `done` once, with what came.
//
// Thread safety: none; everything runs on one thread's io_context.
class StreamedRequest : public std::enable_shared_from_this<StreamedRequest> {
 public:
  using Done = std::function<void(RequestOutcome)>;

  StreamedRequest(boost::asio::io_context& io, const Target& target, const PlannedRequest& planned,
                  Clock::time_point start, double planned_ms, Done done);

  void send();

 private:
  void write();
  void read_head();
  void read_body();
  void on_body(std::size_t num_bytes);
  void on_event(std::string_view json);
  void end(std::string error);
  double now_ms() const;

  boost::asio::ip::tcp::socket socket_;
  const Target& target_;
  Clock::time_point start_;
  Done done_;
  RequestOutcome outcome_;

  std::string request_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::response_parser<boost::beast::http::buffer_body> parser_;
  std::array<char, 16384> body_;
  std::string unread_;         // of the body: the beginning of a line
  bool has_finished_ = false;  // the server has said why the answer ends
};

}  // namespace kvasir::load
