#include "server/auth/rate_limiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvasir::server::auth {
namespace {

constexpr double kPeriodSeconds = 60.0;

bool has_limit(const Tenant& tenant) {
  return tenant.limits.requests_per_minute > 0 || tenant.limits.tokens_per_minute > 0;
}

double filled(double level, std::int64_t per_minute, double seconds) {
  const auto most = static_cast<double>(per_minute);
  return std::min(most, level + most * seconds / kPeriodSeconds);
}

// Until the bucket holds what is needed.
double seconds_until(double needed, double level, std::int64_t per_minute) {
  return std::max(0.0, (needed - level) * kPeriodSeconds / static_cast<double>(per_minute));
}

void add_bucket_headers(std::string_view what, std::int64_t limit, double level,
                        std::vector<http::Header>& headers) {
  if (limit == 0) return;
  headers.push_back({fmt::format("x-ratelimit-limit-{}", what), fmt::format("{}", limit)});
  headers.push_back({fmt::format("x-ratelimit-remaining-{}", what),
                     fmt::format("{}", static_cast<std::int64_t>(std::max(0.0, level)))});
  headers.push_back({fmt::format("x-ratelimit-reset-{}", what),
                     fmt::format("{:.3f}s", seconds_until(static_cast<double>(limit), level, limit))});
}

std::unexpected<ApiError> too_many(const Tenant& tenant, std::string_view what, std::int64_t limit,
                                   double seconds) {
  const int retry_after_s = static_cast<int>(std::clamp(std::ceil(seconds), 1.0, kPeriodSeconds));
  return std::unexpected(
      ApiError{.status = 429,
               .message = fmt::format("{}: {} {} a minute are what its key allows; try again in {} s",
                                      tenant.name, limit, what, retry_after_s),
               .code = "rate_limit_exceeded",
               .retry_after_s = retry_after_s});
}

}  // namespace

RateLimiter::Account& RateLimiter::account_of(const Tenant& tenant, TimePoint now) {
  Account& account = accounts_.try_emplace(tenant.name).first->second;
  fill(account, now);
  const auto adopt = [](std::int64_t limit, std::int64_t& known, double& level) {
    if (limit == 0) return;  // this key has none; another one of the name may have
    const auto most = static_cast<double>(limit);
    level = known == 0 ? most : std::min(level, most);
    known = limit;
  };
  if (account.limits != tenant.limits) {
    adopt(tenant.limits.requests_per_minute, account.limits.requests_per_minute, account.requests);
    adopt(tenant.limits.tokens_per_minute, account.limits.tokens_per_minute, account.tokens);
  }
  return account;
}

void RateLimiter::fill(Account& account, TimePoint now) {
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - account.filled_at).count());
  account.requests = filled(account.requests, account.limits.requests_per_minute, seconds);
  account.tokens = filled(account.tokens, account.limits.tokens_per_minute, seconds);
  account.filled_at = std::max(account.filled_at, now);
}

ApiStatus RateLimiter::admit(const Tenant& tenant, std::int64_t num_prompt_tokens, TimePoint now,
                             std::vector<http::Header>& headers) {
  if (!has_limit(tenant)) return {};
  const auto [requests_per_minute, tokens_per_minute] = tenant.limits;
  const auto needed = static_cast<double>(num_prompt_tokens);
  if (tokens_per_minute > 0 && num_prompt_tokens > tokens_per_minute) {
    return bad_request(fmt::format("{}: {} prompt tokens, its key allows {} a minute", tenant.name,
                                   num_prompt_tokens, tokens_per_minute),
                       "prompt", "limit_exceeded");
  }
  const std::lock_guard lock(mutex_);
  Account& account = account_of(tenant, now);
  ApiStatus admitted = covers(account, tenant, needed);
  if (admitted) {
    if (requests_per_minute > 0) account.requests -= 1.0;
    if (tokens_per_minute > 0) account.tokens -= needed;
  }
  add_headers(tenant.limits, account, headers);
  return admitted;
}

ApiStatus RateLimiter::check(const Tenant& tenant, TimePoint now, std::vector<http::Header>& headers) {
  if (!has_limit(tenant)) return {};
  const std::lock_guard lock(mutex_);
  const Account& account = account_of(tenant, now);
  ApiStatus passes = covers(account, tenant, 0.0);
  if (!passes) add_headers(tenant.limits, account, headers);
  return passes;
}

ApiStatus RateLimiter::covers(const Account& account, const Tenant& tenant, double num_tokens) {
  const auto [requests_per_minute, tokens_per_minute] = tenant.limits;
  if (requests_per_minute > 0 && account.requests < 1.0) {
    return too_many(tenant, "requests", requests_per_minute,
                    seconds_until(1.0, account.requests, requests_per_minute));
  }
  if (tokens_per_minute > 0 && account.tokens < num_tokens) {
    return too_many(tenant, "tokens", tokens_per_minute,
                    seconds_until(num_tokens, account.tokens, tokens_per_minute));
  }
  return {};
}

void RateLimiter::add_headers(const RateLimits& limits, const Account& account,
                              std::vector<http::Header>& headers) {
  add_bucket_headers("requests", limits.requests_per_minute, account.requests, headers);
  add_bucket_headers("tokens", limits.tokens_per_minute, account.tokens, headers);
}

void RateLimiter::give_back(const Tenant& tenant, std::int64_t num_prompt_tokens, TimePoint now) {
  if (!has_limit(tenant)) return;
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(tenant.name);
  if (found == accounts_.end()) return;
  Account& account = found->second;
  fill(account, now);
  const auto add = [](std::int64_t own, double amount, std::int64_t per_minute, double& level) {
    if (own > 0) level = filled(level + amount, per_minute, 0.0);  // of a bucket that admit() took from
  };
  add(tenant.limits.requests_per_minute, 1.0, account.limits.requests_per_minute, account.requests);
  add(tenant.limits.tokens_per_minute, static_cast<double>(num_prompt_tokens),
      account.limits.tokens_per_minute, account.tokens);
}

void RateLimiter::charge(const Tenant& tenant, std::int64_t num_tokens, TimePoint now) {
  if (tenant.limits.tokens_per_minute == 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(tenant.name);
  if (found == accounts_.end()) return;
  fill(found->second, now);
  found->second.tokens -= static_cast<double>(num_tokens);
}

}  // namespace kvasir::server::auth
