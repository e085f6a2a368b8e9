// Arrival times and lengths of requests: a public trace, or one that is drawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::schedule {

struct TraceRequest {
  double at_ms = 0.0;
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_answer_tokens = 0;
  std::int32_t tenant = 0;
};

struct TraceShape {
  std::int64_t num_requests = 10'000;
  double per_second = 2.0;                    // on average over the whole trace
  std::int32_t context_tokens = 8192;         // requests that do not fit are left out
  std::vector<double> tenant_shares = {1.0};  // of the requests
  std::uint64_t seed = 1;
};

// Rows "TIMESTAMP,ContextTokens,GeneratedTokens" of Azure's traces on standard input, again and again until
// there are as many as wanted, stretched to the rate. Error (kBadFile) naming the row.
Result<std::vector<TraceRequest>> read_azure(const TraceShape& shape);
// The same of Mooncake's, an object a row; what its prompts have in common is left aside.
Result<std::vector<TraceRequest>> read_mooncake(const TraceShape& shape);
// Arrivals without memory; prompts of 300 and answers of 100 tokens on average, lengths log-normal.
std::vector<TraceRequest> draw(const TraceShape& shape);

}  // namespace kvasir::schedule
