// The base of every carrier's response writer: ids, headers, the record for log and metrics.
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/response_writer.h"
#include "server/http/session_context.h"

namespace kvasir::server::http {

class TrackedResponseWriter : public ResponseWriter,
                              public std::enable_shared_from_this<TrackedResponseWriter> {
 public:
  const Request& request() const override { return request_; }
  Clock::time_point received_at() const override { return received_at_; }
  void note_generation(const observe::GenerationRecord& record) override;
  void await_generation() override { awaits_generation_ = true; }
  // A second one of a name goes on behind the first, the only one that some clients read.
  void add_header(Header header) override {
    const auto first = std::ranges::find(headers_, header.name, &Header::name);
    if (first == headers_.end()) return headers_.push_back(std::move(header));
    first->value += ", " + header.value;
  }
  void post(std::function<void()> task) override;
  void on_abort(std::function<void()> callback) override;
  void when_quiet(std::chrono::milliseconds quiet, std::function<void()> callback) override;

  // A task that throws, in practice for want of memory, ends this response with an error, or without a word where
  // there is no memory for that either. The others do not notice.
  void attempt(const std::function<void()>& task);

 protected:
  enum class State : std::uint8_t { kOpen, kStreaming, kDone };

  // Tasks run on the executor, a strand. Borrows `context`.
  TrackedResponseWriter(boost::asio::any_io_executor executor, Request request, Clock::time_point received_at,
                        const SessionContext& context);

  State state() const { return state_; }
  const SessionContext& context() const { return context_; }
  // The headers that go with the answer beside those of the response.
  std::vector<Header> take_headers();
  // The answer begins with this status; it is over at once unless it is a stream.
  void note_begin(int status, State state);
  void note_write() { last_write_ = Clock::now(); }
  // The stream ends here, though it is not complete.
  void note_failure() { stream_failed_ = true; }
  // Nothing more will be written, and nobody is called back.
  void end();
  // The same for an answer that is not over; whoever works on it hears of it. The log has its line when it is
  // known what the engine took.
  void end_aborted(AbortCause cause);
  // There is no memory to say anything: the answer ends, and its connection if need be.
  virtual void give_up_unsaid() = 0;
  observe::AccessRecord record() const;

 private:
  void wait_until_quiet();
  // Looks now and then whether the request's key was revoked, and ends the answer then.
  void watch_key();
  // Ends an answer that cannot be completed: whoever works on it hears of it first.
  void give_up(const ApiError& error);
  void give_up_or_end(int status, const char* message, const char* code);

  const SessionContext& context_;
  const Request request_;
  const Clock::time_point received_at_;
  const std::string_view route_;  // known whether or not the request gets there
  State state_ = State::kOpen;
  int status_ = 0;  // sent
  bool stream_failed_ = false;
  std::string request_id_, client_request_id_;
  std::optional<observe::GenerationRecord> generation_;
  bool awaits_generation_ = false;
  std::optional<observe::AccessRecord> waiting_record_;
  std::vector<Header> headers_;
  std::function<void()> abort_callback_;

  boost::asio::steady_timer key_timer_;
  boost::asio::steady_timer quiet_timer_;
  std::chrono::milliseconds quiet_{0};
  std::function<void()> quiet_callback_;
  Clock::time_point last_write_;
};

// The request is over: counts what it cost, writes its line and ends its trace.
void log_access(const SessionContext& context, const observe::AccessRecord& record);

}  // namespace kvasir::server::http
