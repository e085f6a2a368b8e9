// Writes the response of a gRPC call.
#pragma once

#include <grpcpp/support/status.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/carriers/grpc/call_error.h"
#include "server/carriers/grpc/call_line.h"
#include "server/http/min_transfer_rate.h"
#include "server/http/output_bound.h"
#include "server/http/tracked_response_writer.h"

namespace kvasir::server::carriers {

// Whatever happens, the line is finished once; it is borrowed until then.
//
// Thread safety: begin() and the on_... functions may be called from any thread, all others as of every
// response writer.
class CallResponseWriter final : public http::TrackedResponseWriter {
 public:
  CallResponseWriter(boost::asio::any_io_executor executor, http::Request request, CallLine& line,
                     const http::SessionContext& context);

  // Answers the request, with `admitted`'s error where that is one.
  void begin(ApiStatus admitted);

  // gRPC calls these: the last message has left, or cannot; the client has cancelled the call, or is gone;
  // all is over.
  void on_written(bool is_sent);
  void on_cancelled();
  void on_done();

  void respond(http::Response response) override;
  void begin_stream() override;
  // Each event becomes a message; a failure becomes the status of the call.
  void write(std::span<const http::Event> events) override;
  void ping() override { write({}); }  // gRPC sends its own
  void end_stream() override;
  void fail_stream() override;
  void when_sent(std::function<void()> callback) override;

 private:
  void give_up_unsaid() override;
  std::shared_ptr<CallResponseWriter> self() {
    return std::static_pointer_cast<CallResponseWriter>(shared_from_this());
  }
  void answer(const ApiStatus& admitted);
  void add_initial_metadata();
  void send(const http::Event& event);
  void write_next();
  void after_write(bool is_sent);
  void watch_reader();
  // With a 503 or what else a client should know of an answer that has an end.
  void complete(CallError end);
  void abort(http::AbortCause cause);
  void finish_line();
  void watch_finish(grpc::CallbackServerContext& call);
  void log();

  CallLine* line_;  // null once finished
  std::deque<std::string> outgoing_;
  std::size_t unsent_bytes_ = 0;
  bool is_writing_ = false;
  std::optional<CallError> failure_;  // said by the last event
  std::optional<CallError> end_;      // of the call, when all is written
  std::function<void()> sent_callback_;
  boost::asio::steady_timer stall_;
  http::MinTransferRate write_rate_;
  RequestMemory::Share memory_;  // of the request's body, and of an answer in one piece
  std::size_t whole_bytes_ = 0;  // of that answer
  http::OutputBound output_bound_;
  // A line that was finished and is not done can only be cancelled. gRPC may call on_done() from within that
  // cancelling.
  std::recursive_mutex finishing_mutex_;
  grpc::CallbackServerContext* finishing_ = nullptr;  // guarded
  bool is_aborted_ = false;
  std::optional<observe::AccessRecord> record_;  // of an answer that came to its end
  Clock::time_point ended_at_;
};

}  // namespace kvasir::server::carriers
