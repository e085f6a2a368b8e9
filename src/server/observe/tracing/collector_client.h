// Posts spans to a collector.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "server/http/message.h"
#include "server/observe/tracing/collector_url.h"
#include "server/observe/tracing/host_lookup.h"

namespace kvasir::server::observe {

struct CollectorReply {
  int status = 0;
  std::optional<std::chrono::seconds> retry_after;
  std::string body;  // at most 64 KiB; empty where it was longer
};

// A connection for each post: there are few, and none goes stale. With https the server's certificate and its
// name are verified. Redirects are not followed.
//
// Thread safety: one thread posts; end_by() from any thread.
class CollectorClient {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    CollectorUrl url;
    std::vector<http::Header> headers;  // beside those that a post has anyway
    std::string user_agent;
    std::string ca_file;  // PEM, of those to trust; empty: whom the system trusts
  };

  // Error: kBadFile for a ca_file that holds no certificate.
  static Result<std::unique_ptr<CollectorClient>> create(Options options);

  // Error: kUnavailable, why there was no reply by the deadline.
  Result<CollectorReply> post(std::string_view content_type, std::string_view body,
                              Clock::time_point deadline);

  // No post, under way or later, lasts beyond this.
  void end_by(Clock::time_point when);

 private:
  CollectorClient(Options options, std::unique_ptr<boost::asio::ssl::context> tls);

  // Runs what has been started until `is_done`; false when time is up.
  bool run_until(const std::function<bool()>& is_done);
  // Starts one operation and runs it to its end; its buffers and streams are free afterwards.
  template <class Stream, class Start>
  boost::system::error_code run(Stream& stream, Start&& start);
  Result<std::vector<HostLookup::Endpoint>> find_host();
  template <class Stream>
  Result<CollectorReply> exchange(Stream& stream, std::string_view content_type, std::string_view body);
  Result<CollectorReply> exchange_over_tls(const std::vector<HostLookup::Endpoint>& endpoints,
                                           std::string_view content_type, std::string_view body);

  const Options options_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;  // null: http
  // Shared with a look-up that was left behind.
  const std::shared_ptr<boost::asio::io_context> io_ = std::make_shared<boost::asio::io_context>(1);
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_->get_executor()};
  HostLookup lookup_{io_};
  Clock::time_point deadline_{};  // of the post under way
  std::atomic<Clock::time_point> end_by_{Clock::time_point::max()};
};

}  // namespace kvasir::server::observe
