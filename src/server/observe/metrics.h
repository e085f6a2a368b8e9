// The server's counts beside the engine's own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/abort_cause.h"
#include "server/observe/histogram.h"
#include "server/observe/request_slices.h"
#include "server/observe/tool_call_counts.h"

namespace kvasir::server::observe {

// The stages of the time to the first token, in their order.
enum class StartStage : std::uint8_t { kPreprocess, kQueue, kPrefill, kFirstDecode, kFlush };
inline constexpr std::array<std::string_view, 5> kStartStageNames = {"preprocess", "queue", "prefill",
                                                                     "first_decode", "flush"};

// Times of the answers of one model.
//
// Thread safety: any thread.
struct ModelTimes {
  Histogram time_to_first_token{kTimeToFirstTokenBounds};
  Histogram inter_token{kInterTokenBounds};
  Histogram request{kRequestBounds};  // generations, from the request's arrival to its last token
  std::array<Histogram, 5> start_stages{Histogram{kTimeToFirstTokenBounds}, Histogram{kTimeToFirstTokenBounds},
                                        Histogram{kTimeToFirstTokenBounds}, Histogram{kTimeToFirstTokenBounds},
                                        Histogram{kTimeToFirstTokenBounds}};

  Histogram& start_stage(StartStage stage) { return start_stages[static_cast<std::size_t>(stage)]; }
  const Histogram& start_stage(StartStage stage) const { return start_stages[static_cast<std::size_t>(stage)]; }
};

struct CostSums {
  std::int64_t num_requests = 0;
  std::int64_t num_with_first_token = 0;  // the others were for their prompts
  std::int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  double preprocess_ms = 0.0, flush_ms = 0.0;
  double first_token_ms = 0.0, total_ms = 0.0;  // from the request's arrival
  RequestCost cost;
};

// Thread safety: any thread.
class ServerMetrics {
 public:
  void count_response(std::string_view route, int status);
  // Counts a request that the engine worked for, by tenant and route, and by slices.
  void count_cost(const AccessRecord& record);
  void count_abort(http::AbortCause cause) { ++aborts_[static_cast<std::size_t>(cause)]; }

  // (route, status) and how often.
  std::vector<std::pair<std::pair<std::string, int>, std::int64_t>> responses() const;
  // By tenant and route; tenants beyond the first 64 are one.
  std::vector<std::pair<std::pair<std::string, std::string>, CostSums>> costs() const;
  CostSums cost_of(const std::string& tenant) const;
  std::map<RequestSlices::Slice, RequestSlices::Sums> slices() const;
  std::int64_t aborts(http::AbortCause cause) const { return aborts_[static_cast<std::size_t>(cause)]; }

  ToolCallCounts tool_calls;
  std::atomic<std::int64_t> num_connections{0};
  std::atomic<std::int64_t> num_calmed{0};             // connections that asked for too much
  std::atomic<std::int64_t> num_answering{0};          // requests that arrived and are not fully answered
  std::atomic<std::int64_t> num_answering_at_stop{0};  // when the server began to drain

 private:
  std::array<std::atomic<std::int64_t>, http::kAbortCauses.size()> aborts_{};

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::int64_t> responses_;  // guarded; bounded by routes x statuses
  std::map<std::pair<std::string, std::string>, CostSums> costs_;  // guarded; by tenant and route
  std::set<std::string> tenants_;                                  // guarded; the first
  RequestSlices slices_;                                           // guarded
};

}  // namespace kvasir::server::observe
