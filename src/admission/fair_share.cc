#include "admission/fair_share.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/check.h"

namespace kvasir::admission {
namespace {

constexpr double kGeneratedTokenWeight = 2.0;
constexpr std::chrono::seconds kPresentTime{60};
constexpr std::chrono::duration<double> kHalfLife{10.0};
constexpr std::size_t kMaxAccounts = 1024;  // beyond it those that are not there are forgotten

}  // namespace

FairShare::Account& FairShare::enter(std::string_view tenant, TimePoint now) {
  auto found = accounts_.find(tenant);
  if (found == accounts_.end()) {
    if (accounts_.size() >= kMaxAccounts) forget_oldest();
    found = accounts_.try_emplace(std::string(tenant)).first;
    found->second.name = tenant;
  }
  Account& account = found->second;
  if (account.num_unfinished++ == 0) ++num_unfinished_tenants_;
  account.last_seen = now;
  return account;
}

FairShare& FairShare::adapters_of(Account& account) {
  if (account.adapters == nullptr) account.adapters = std::make_unique<FairShare>();
  return *account.adapters;
}

double FairShare::lead_tokens(const Account& account) const {
  if (num_unfinished_tenants_ < 2) return 0.0;
  const double served = served_tokens(account);
  double least = served;
  for (const auto& [name, other] : accounts_) {
    if (other.num_unfinished > 0) least = std::min(least, served_tokens(other));
  }
  return served - least;
}

bool FairShare::is_underserved(const Account& account, double tokens) const {
  const double least = served_tokens(account) + tokens;
  return std::ranges::any_of(accounts_, [&](const auto& entry) {
    return entry.second.num_unfinished > 0 && served_tokens(entry.second) >= least;
  });
}

bool FairShare::may_be_underserved(double tokens, TimePoint now) const {
  double most = 0.0;
  for (const auto& [name, account] : accounts_) {
    if (account.num_unfinished > 0) most = std::max(most, served_tokens(account));
  }
  return std::ranges::any_of(accounts_, [&](const auto& item) {
    return is_present(item.second, now) && most >= served_tokens(item.second) + tokens;
  });
}

void FairShare::leave(Account& account, TimePoint now) {
  CHECK(account.num_unfinished > 0);
  account.last_seen = now;
  if (--account.num_unfinished == 0) --num_unfinished_tenants_;
}

void FairShare::charge(Account& account, std::int32_t num_prompt_tokens, std::int32_t num_generated_tokens,
                       TimePoint now) {
  const double tokens = num_prompt_tokens + kGeneratedTokenWeight * num_generated_tokens;
  account.charged_tokens = served_tokens(account) + tokens;
  most_served_tokens_ = std::max(most_served_tokens_, account.charged_tokens);
  level_tokens_ += tokens / std::max(1, num_unfinished_tenants_);
  account.recent_tokens = recent_tokens(account, now) + tokens;
  account.charged_at = now;
}

double FairShare::recent_tokens(const Account& account, TimePoint now) {
  const std::chrono::duration<double> age = now - account.charged_at;
  return account.recent_tokens * std::exp2(-age / kHalfLife);
}

std::int32_t FairShare::num_present(TimePoint now) const {
  return static_cast<std::int32_t>(
      std::ranges::count_if(accounts_, [&](const auto& entry) { return is_present(entry.second, now); }));
}

bool FairShare::is_present(const Account& account, TimePoint now) {
  return account.num_unfinished > 0 || now - account.last_seen < kPresentTime;
}

void FairShare::forget_oldest() {
  auto oldest = accounts_.end();
  for (auto it = accounts_.begin(); it != accounts_.end(); ++it) {
    if (it->second.num_unfinished > 0) continue;
    if (oldest == accounts_.end() || it->second.last_seen < oldest->second.last_seen) oldest = it;
  }
  if (oldest != accounts_.end()) accounts_.erase(oldest);
}

}  // namespace kvasir::admission
