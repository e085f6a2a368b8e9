// Writes the response of a request that came over a WebSocket, beside others.
#pragma once

#include <memory>
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
  void begin_stream(http::Response head) override;
  // Events as in SSE; each becomes a message, comments and [DONE] do not.
  void write(std::string_view piece) override;
  void end_stream() override { finish_stream("complete"); }
  void fail_stream() override;
  void when_sent(std::function<void()> callback) override;

  // Nothing more will be sent of it, and whoever works on it hears of that.
  void abort(http::AbortCause cause);

 private:
  void begin(const http::Response& response, State state);
  void finish_stream(std::string_view how);
  void finish();

  std::shared_ptr<Channel> channel_;
  const std::string id_;
  RequestMemory::Share memory_;  // of the request's body
};

}  // namespace kvasir::server::carriers
