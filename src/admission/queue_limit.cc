#include "admission/queue_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace kvasir::admission {
namespace {

// Flags of `kvasir serve` that an operator can change.
constexpr std::string_view kRequestsFlag = "--max-queue";
constexpr std::string_view kTokensFlag = "--max-queue-kv";

struct Use {
  std::int64_t total = 0;
  std::int64_t own = 0;  // of it, the tenant's
};

// Each tenant may have its part even when the whole is taken.
Status check_room(std::string_view what, const std::string& flag, Use use, std::int64_t coming, std::int64_t limit,
                  std::int64_t num_tenants) {
  const std::int64_t share = std::max<std::int64_t>(1, limit / num_tenants);
  if (use.total + coming <= limit || use.own + coming <= share) return {};
  const std::string own = num_tenants == 1 ? ""
                                           : fmt::format(", or {} for each of {} keys with {} of this one",
                                                         share, num_tenants, use.own);
  return make_error(ErrorKind::kUnavailable, fmt::format("queue: {} {} and {} came, the limit is {} ({}){}",
                                                         use.total, what, coming, limit, flag, own));
}

// Made where it is not there yet.
template <class Map>
auto& entry_of(Map& map, std::string_view name) {
  const auto found = map.find(name);
  return found != map.end() ? found->second : map.try_emplace(std::string(name)).first->second;
}

}  // namespace

Status QueueLimit::check(const Arrivals& arrivals, const LoadSnapshot& load) const {
  const auto part = [&](std::int64_t count) { return arrivals.priority > 0 ? count / 2 : count; };
  const auto own = unfinished_of_.find(arrivals.tenant);
  const bool is_there = own != unfinished_of_.end();
  const std::int64_t num_tenants = std::ssize(unfinished_of_) + (is_there ? 0 : 1);
  const std::int64_t limit = limits_.num_seats + part(limits_.num_requests);
  if (arrivals.num_requests > limit) {  // nothing to try again
    return make_error(ErrorKind::kUsage, fmt::format("queue: {} requests came together, the limit is {} ({})",
                                                     arrivals.num_requests, limit, kRequestsFlag));
  }
  const bool is_first_of_adapter = is_there && !own->second.by_adapter.contains(arrivals.adapter);
  if (is_first_of_adapter && arrivals.num_requests == 1) return {};
  const std::string flag = fmt::format("{}{} {} beside {} that run", arrivals.priority > 0 ? "half of " : "",
                                       kRequestsFlag, limits_.num_requests, limits_.num_seats);
  KVASIR_CHECKED(check_room("requests are waiting or running", flag, {num_unfinished_, is_there ? own->second.num_requests : 0},
                            arrivals.num_requests, limit, num_tenants));
  if (limits_.num_prompt_tokens == 0) return {};
  Use waiting;
  for (const WaitingGroup& group : load.groups) {
    waiting.total += group.prompts.num_tokens;
    if (group.tenant == arrivals.tenant) waiting.own += group.prompts.num_tokens;
  }
  if (waiting.own == 0 && arrivals.num_requests == 1) return {};
  const std::int64_t token_limit = part(limits_.num_prompt_tokens);
  if (arrivals.num_requests > 1 && arrivals.num_prompt_tokens > token_limit) {
    return make_error(ErrorKind::kUsage, fmt::format("queue: {} prompt tokens came together, the limit is {} ({})",
                                                     arrivals.num_prompt_tokens, token_limit, kTokensFlag));
  }
  return check_room("prompt tokens are waiting", std::string(kTokensFlag), waiting, arrivals.num_prompt_tokens, token_limit,
                    num_tenants);
}

void QueueLimit::admit(std::string_view tenant, std::string_view adapter) {
  Unfinished& own = entry_of(unfinished_of_, tenant);
  ++own.num_requests;
  ++entry_of(own.by_adapter, adapter);
  ++num_unfinished_;
}

void QueueLimit::leave(std::string_view tenant, std::string_view adapter) {
  const auto own = unfinished_of_.find(tenant);
  CHECK(own != unfinished_of_.end());
  const auto queue = own->second.by_adapter.find(adapter);
  CHECK(queue != own->second.by_adapter.end());
  if (--queue->second == 0) own->second.by_adapter.erase(queue);
  if (--own->second.num_requests == 0) unfinished_of_.erase(own);
  --num_unfinished_;
}

}  // namespace kvasir::admission
