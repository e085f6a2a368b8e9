#include "server/api/search_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kvasir::server::api {

ApiStatus share_tokens(const SearchLimits& limits, std::int32_t candidates_per_request, std::vector<Request>& requests,
                       std::int32_t& max_tokens) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  if (limits.max_total_tokens == 0) return {};
  const std::int64_t num_candidates = std::ssize(requests) * candidates_per_request;
  if (limits.max_total_tokens < num_candidates) {
    return bad_request(fmt::format("search.max_total_tokens must be at least {}, a token for each answer, is {}", num_candidates,
                                   limits.max_total_tokens),
                       "search.max_total_tokens");
  }
  const auto part = static_cast<std::int32_t>(std::min<std::int64_t>(limits.max_total_tokens / num_candidates, kMost));
  for (Request& request : requests) {
    if (request.sampling.max_tokens.value_or(kMost) <= part) continue;
    request.sampling.max_tokens = part;
    max_tokens = part;
  }
  return {};
}

}  // namespace kvasir::server::api
