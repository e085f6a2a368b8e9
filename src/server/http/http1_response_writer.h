// Writes the response of a request that came over a connection of its own, as HTTP/1.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "server/http/output_bound.h"
#include "server/http/response_head.h"
#include "server/http/tracked_response_writer.h"

namespace kvasir::server::http {

class Session;

// Holds its session while it is open.
class Http1ResponseWriter final : public TrackedResponseWriter {
 public:
  struct Options {
    bool keep_alive = false;
    bool is_http_1_0 = false;
    Clock::time_point received_at = {};
  };

  Http1ResponseWriter(std::shared_ptr<Session> session, Request request, const Options& options);

  void respond(Response response) override;
  void encode_events(const EventEncoding& encoding) override { encoding_ = &encoding; }
  void begin_stream() override;
  void write(std::span<const Event> events) override;
  bool begin_body(Response head, std::int64_t num_bytes) override;
  void write_body(std::string bytes) override;
  void ping() override;
  void end_stream() override { end_stream(options_.keep_alive); }
  void fail_stream() override;
  void when_sent(std::function<void()> callback) override;

  bool has_begun() const { return state() != State::kOpen; }  // bytes of it were sent
  bool is_http_1_0() const { return options_.is_http_1_0; }

  // The connection is gone: nothing will be sent, and whoever works on the answer hears of it. Only an answer
  // that is not over is aborted.
  void abort(AbortCause cause);
  void give_up_unsaid() override;

 private:
  void send_head(const Response& response, BodyFraming framing, State state);
  void write_piece(std::string_view piece);
  void end_stream(bool keep_alive);
  void finish(bool keep_alive);

  std::shared_ptr<Session> session_;
  OutputBound output_bound_;
  const EventEncoding* encoding_;
  Options options_;
  BodyFraming framing_ = BodyFraming::kLength;
};

}  // namespace kvasir::server::http
