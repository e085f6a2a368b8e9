// Sends the spans of requests to a collector.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/observe/tracing/backoff.h"
#include "server/observe/tracing/collector_client.h"
#include "server/observe/tracing/export_counts.h"
#include "server/observe/tracing/pending_requests.h"
#include "server/observe/tracing/span.h"

namespace kvasir::server::observe {

// A thread of its own makes spans of requests that are over and posts them in batches, one at a time. Who
// hands a request over never waits for it: what does not fit is dropped and counted, and so is a batch that
// the collector refuses, or does not take for a minute. It is warned of once when the collector stops taking
// spans, and once when it takes them again. Source: OTLP 1.9, "Failures".
//
// Thread safety: push() and counts() from any thread, finish() from one.
class SpanExporter {
 public:
  using Warn = std::function<void(std::string_view line)>;
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::vector<Attribute> resource;
    TracedServer server;
    std::string version;  // of this program
    std::string shown_url;
    std::chrono::milliseconds timeout{10'000};  // of one post
    PendingRequests::Limits pending;
    Backoff::Limits backoff;
    Warn warn;  // called on the exporter's thread; must be set
  };

  SpanExporter(Options options, std::unique_ptr<CollectorClient> client);
  // Drops what waits.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Requires: request.record.trace.
  void push(TracedRequest request);
  // Sends what waits, for at most so long, and is over then: what is left is dropped.
  void finish(std::chrono::milliseconds time);
  const ExportCounts& counts() const { return counts_; }

 private:
  enum class Outcome : std::uint8_t { kTaken, kRefused, kAgain };
  struct Attempt {
    Outcome outcome;
    std::string reason;  // why not
    std::optional<std::chrono::seconds> retry_after;
  };

  void run();
  // The next batch once it is due, at once while finishing; empty: that was all.
  std::vector<TracedRequest> wait_for_batch();
  void deliver(const std::vector<TracedRequest>& batch);
  Attempt attempt(std::string_view body, std::int64_t num_spans);
  // Until finish() at most.
  void sleep(std::chrono::milliseconds time);
  bool is_finishing();
  void note_trouble(std::string_view reason);
  void note_taken();

  const Options options_;
  const std::unique_ptr<CollectorClient> client_;
  ExportCounts counts_;

  // The thread's own.
  std::minstd_rand random_{std::random_device{}()};
  bool in_trouble_ = false;  // the last post failed, and it was warned of
  bool warned_of_rejection_ = false;
  std::int64_t dropped_before_ = 0;  // when the trouble began

  std::mutex mutex_;
  std::condition_variable changed_;
  PendingRequests pending_;                                 // guarded
  bool finishing_ = false;                                  // guarded
  Clock::time_point finish_by_ = Clock::time_point::max();  // guarded
  std::thread thread_;                                      // last: everything else exists while it runs
};

}  // namespace kvasir::server::observe
