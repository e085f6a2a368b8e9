// Writes the response of a request that came over a WebSocket, beside others.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/http/tracked_response_writer.h"

namespace kvasir::server::carriers {

class Channel;

// Holds its channel while it is open.
class ChannelResponseWriter final : public http::TrackedResponseWriter {
 public:
  ChannelResponseWriter(std::shared_ptr<Channel> channel, std::string id, http::Request request);

  // For the body. Errors: 413, 503.
  ApiStatus take_memory();
  void respond(http::Response response) override;
  void begin_stream() override;
  // Each event becomes a message; of what only ends a stream of SSE there is none.
  void write(std::span<const http::Event> events) override;
  void ping() override { write({}); }  // Beast sends its own
  void end_stream() override { finish_stream("complete"); }
  void fail_stream() override;
  void when_sent(std::function<void()> callback) override;

  // Nothing more will be sent of it, and whoever works on it hears of that.
  void abort(http::AbortCause cause);

 private:
  void give_up_unsaid() override;
  void begin(const http::Response& response, State state);
  void finish_stream(std::string_view how);
  void finish();

  std::shared_ptr<Channel> channel_;
  const std::string id_;
  RequestMemory::Share memory_;  // of the request's body
};

}  // namespace kvasir::server::carriers
