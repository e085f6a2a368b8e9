// How much may be in the queue, and each tenant's part of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "admission/load_snapshot.h"
#include "kvasir/result.h"

namespace kvasir::admission {

struct QueueLimitConfig {
  std::int32_t num_seats = 0;          // for running requests
  std::int32_t num_requests = 0;       // behind them
  std::int64_t num_prompt_tokens = 0;  // waiting; 0: any number
};

// Requests that want to enter together.
struct Arrivals {
  std::string_view tenant;
  std::int32_t priority = 0;
  std::int64_t num_requests = 0;
  std::int64_t num_prompt_tokens = 0;  // without what is expected to be cached
  std::string_view adapter = {};       // of the first
};

// A queue that one tenant has filled is still open to the others: each has room for an equal part of it, and
// for one request. A tenant alone has all of it. So with n tenants the queue holds at most the limit times
// 1 + 1/2 + ... + 1/n. Where a tenant's part is full there is still room for one request of each of its adapters.
// Requests behind priority 0 may fill half of it, so that they do not keep others out.
//
// Thread safety: none; LocalEngine's mutex guards it.
class QueueLimit {
 public:
  explicit QueueLimit(QueueLimitConfig limits) : limits_(limits) {}

  bool limits_prompt_tokens() const { return limits_.num_prompt_tokens > 0; }
  // Error (kUnavailable; kUsage where so many never fit) naming what is there, what came and the limit.
  // One prompt may have any length where no other of its tenant waits.
  Status check(const Arrivals& arrivals, const LoadSnapshot& load) const;

  void admit(std::string_view tenant, std::string_view adapter);
  void leave(std::string_view tenant, std::string_view adapter);  // its last output is delivered
  std::int64_t num_unfinished() const { return num_unfinished_; }

 private:
  struct Unfinished {
    std::int64_t num_requests = 0;
    std::map<std::string, std::int64_t, std::less<>> by_adapter;  // those with any
  };

  const QueueLimitConfig limits_;
  std::map<std::string, Unfinished, std::less<>> unfinished_of_;  // by tenant, those with any
  std::int64_t num_unfinished_ = 0;
};

}  // namespace kvasir::admission
