// The exchange of a request that came over a connection.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/exchange.h"
#include "server/http/response_head.h"

namespace kvasir::server {

class Session;

// Adds what every answer carries: request ids, processing time, CORS. Holds its session while it is open.
class Answer final : public Exchange, public std::enable_shared_from_this<Answer> {
 public:
  struct Options {
    bool keep_alive = false;
    bool is_http_1_0 = false;
    std::chrono::steady_clock::time_point received_at = {};
  };

  Answer(std::shared_ptr<Session> session, HttpRequest request, const Options& options);

  const HttpRequest& request() const override { return request_; }
  Clock::time_point received_at() const override { return options_.received_at; }
  void set_route(std::string_view pattern) override { route_ = pattern; }
  void note_generation(const GenerationRecord& record) override { generation_ = record; }
  void add_header(Header header) override { headers_.push_back(std::move(header)); }
  void post(std::function<void()> task) override;
  void on_abort(std::function<void(AbortCause)> callback) override;
  void respond(HttpResponse response) override;
  void begin_stream(HttpResponse head) override;
  void write(std::string_view piece) override;
  void end_stream() override { end_stream(options_.keep_alive); }
  void fail_stream() override { end_stream(/*keep_alive=*/false); }
  void when_sent(std::function<void()> callback) override;
  void when_quiet(std::chrono::milliseconds quiet, std::function<void()> callback) override;

  bool has_begun() const { return state_ != State::kOpen; }  // bytes of it were sent
  bool is_http_1_0() const { return options_.is_http_1_0; }

  // The connection is gone: nothing will be sent, and whoever works on the answer hears of it. Only an answer
  // that is not over is aborted.
  void abort(AbortCause cause);

 private:
  enum class State : std::uint8_t { kOpen, kStreaming, kDone };

  void send_head(const HttpResponse& response, BodyFraming framing);
  void end_stream(bool keep_alive);
  void finish(bool keep_alive);
  void wait_until_quiet();
  AccessRecord record() const;

  std::shared_ptr<Session> session_;
  const HttpRequest request_;
  Options options_;
  State state_ = State::kOpen;
  std::string route_ = "other";
  int status_ = 0;  // sent
  std::string request_id_, client_request_id_;
  std::optional<GenerationRecord> generation_;
  std::vector<Header> headers_;
  std::function<void(AbortCause)> abort_callback_;

  boost::asio::steady_timer quiet_timer_;
  std::chrono::milliseconds quiet_{0};
  std::function<void()> quiet_callback_;
  Clock::time_point last_write_;
};

}  // namespace kvasir::server
