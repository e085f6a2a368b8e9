// The requests and tokens that each tenant may still ask for.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/auth/tenant.h"
#include "server/http/message.h"

namespace kvasir::server::auth {

// Token buckets that a minute fills: a burst of a whole minute's allowance passes at once. A prompt must be
// covered when it comes; an answer is taken off as it is generated and may overdraw what the next one waits
// for.
//
// Thread safety: any thread.
class RateLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // One request with so many tokens in its prompts; what is left goes into `headers` as OpenAI names it.
  // Errors: 429 with the time after which it would pass, 400 for a prompt that never would.
  ApiStatus admit(const Tenant& tenant, std::int64_t num_prompt_tokens, TimePoint now,
                  std::vector<http::Header>& headers);
  // Whether a request without a prompt would pass; takes nothing. Only a refusal puts the tenant's levels
  // into `headers`.
  ApiStatus check(const Tenant& tenant, TimePoint now, std::vector<http::Header>& headers);
  // Takes back an admit() for which nothing was done.
  void give_back(const Tenant& tenant, std::int64_t num_prompt_tokens, TimePoint now);
  // So many tokens of an answer, which may have been asked for when the tenant's limits were others.
  void charge(const Tenant& tenant, std::int64_t num_tokens, TimePoint now);

 private:
  struct Account {
    RateLimits limits;  // as of the last admit(); what is in the buckets stays as far as it fits
    double requests = 0.0;
    double tokens = 0.0;
    TimePoint filled_at;
  };

  Account& account_of(const Tenant& tenant, TimePoint now);  // with mutex_ held, as the other
  static void fill(Account& account, TimePoint now);
  static void add_headers(const RateLimits& limits, const Account& account,
                          std::vector<http::Header>& headers);
  static ApiStatus covers(const Account& account, const Tenant& tenant, double num_tokens);

  std::mutex mutex_;
  std::map<std::string, Account> accounts_;  // of tenants with a limit: no more than there are keys
};

}  // namespace kvasir::server::auth
