// The writer of an answer that no connection waits for.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <span>

#include "server/api_error.h"
#include "server/http/response_writer.h"
#include "server/observe/metrics.h"

namespace kvasir::server::api {

// Gives the answer to a callback. A stream has nobody to go to and is refused, unless a client follows it: that
// client gets all that is written, and its leaving changes nothing.
//
// Thread safety: as ResponseWriter's; abort() and give_up() from any thread.
class BackgroundWriter final : public http::ResponseWriter,
                               public std::enable_shared_from_this<BackgroundWriter> {
 public:
  // Called once: with the answer, or none when it was aborted or was a stream.
  using Answered = std::function<void(const http::Response* response)>;

  // Tasks run on the executor, one at a time. `metrics` counts what the engine took for it; null: nobody does.
  BackgroundWriter(boost::asio::any_io_executor executor, http::Request request, Answered answered,
                   observe::ServerMetrics* metrics = nullptr)
      : executor_(std::move(executor)),
        request_(std::move(request)),
        answered_(std::move(answered)),
        metrics_(metrics) {}

  // Before anything is written.
  void set_follower(std::shared_ptr<http::ResponseWriter> client) { client_ = std::move(client); }
  // Whoever works on the answer stops. There is none.
  void abort();
  // The same, and the error is the answer.
  void give_up(const ApiError& error);
  bool is_over() const { return answered_ == nullptr; }  // from its tasks

  const http::Request& request() const override { return request_; }
  Clock::time_point received_at() const override { return received_at_; }
  void note_generation(const observe::GenerationRecord& record) override;
  void await_generation() override {}
  void add_header(http::Header) override {}
  void post(std::function<void()> task) override;
  void on_abort(std::function<void()> callback) override;
  void when_sent(std::function<void()> callback) override { callback(); }
  void when_quiet(std::chrono::milliseconds, std::function<void()>) override {}
  void respond(http::Response response) override;
  void begin_stream() override;
  void write(std::span<const http::Event> events) override;
  void ping() override {}
  void end_stream() override { end_stream(false); }
  void fail_stream() override { end_stream(true); }

 private:
  void attempt(const std::function<void()>& task);
  void fail(const ApiError& error);
  void end(const http::Response* response);
  void end_stream(bool has_failed);

  const boost::asio::any_io_executor executor_;
  const http::Request request_;
  Answered answered_;  // null: it is over
  observe::ServerMetrics* const metrics_;
  std::shared_ptr<http::ResponseWriter> client_;
  bool has_client_stream_ = false;  // its head was sent
  std::function<void()> abort_;
  const Clock::time_point received_at_ = Clock::now();
};

}  // namespace kvasir::server::api
