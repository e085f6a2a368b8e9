// The service that each tenant has had, so that asking for more does not give more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "admission/output_lengths.h"
#include "admission/time_point.h"

namespace kvasir::admission {

// Virtual token counters (Sheng et al., "Fairness in Serving Large Language Models", 2024): the least served
// tenant is next. Unused service is soon gone: a counter is at most a credit below the greatest ever, or
// below the level that equal service of all present tenants would give, whether its tenant is away or asks
// for little. (The paper lifts a counter to the least of those that are there when a tenant comes back. One
// that keeps a single stream for an hour would never be lifted, and take those with it that come meanwhile:
// they would have an hour ahead of all others.)
//
// Thread safety: none; the engine thread is the only caller.
class FairShare {
 public:
  // Two quanta of WaitingConfig::tenant_quantum_tokens: a tenant that asks for less than its share is ahead of
  // those that ask for more, also while it is served. Quantum and credit are those of up to four tenants. With
  // more tenants they are less, or the most served one would wait for the whole credit of each. The
  // quantum is also less where tokens take longer (turn_scale.h). The credit is not: a burst of a tenant that
  // asks for little has to fit it.
  static constexpr double kCreditTokens = 8192.0;
  static double quantum_scale(std::int32_t num_tenants) { return 4.0 / std::max(4, num_tenants); }

  struct Account {
    std::string name;
    double charged_tokens = 0.0;  // the counter, when it was last charged
    double recent_tokens = 0.0;   // of these, older ones forgotten; as of charged_at
    TimePoint charged_at{};
    std::int32_t num_unfinished = 0;  // sequences, waiting or running
    std::int32_t num_running = 0;     // of them
    TimePoint last_seen{};            // with something unfinished
    OutputLengths lengths;            // of its answers
    std::unique_ptr<FairShare> adapters;  // their shares of what the tenant is given; see adapters_of()
  };

  // The counter now. A generated token counts as two of a prompt.
  double served_tokens(const Account& account) const {
    return std::max(account.charged_tokens, entry_tokens());
  }
  // The part of the quantum that the machine's speed leaves: in (0, 1].
  double turn_scale() const { return turn_scale_; }
  void set_turn_scale(double turn_scale) { turn_scale_ = turn_scale; }
  // The order's quantum for as many tenants as have something unfinished.
  double quantum_tokens(double tenant_quantum_tokens) const {
    return tenant_quantum_tokens * turn_scale_ * quantum_scale(num_unfinished_tenants_);
  }
  // The counter of an unknown tenant, and the least there is.
  double entry_tokens() const {
    const double credit_tokens = quantum_scale(num_unfinished_tenants_) * kCreditTokens;
    return std::max(0.0, std::max(most_served_tokens_, level_tokens_) - credit_tokens);
  }

  // The shares within a tenant's: of its requests' adapters, the model as it is among them.
  static FairShare& adapters_of(Account& account);
  // The excess of an account over the least served one with something unfinished.
  double lead_tokens(const Account& account) const;

  // One more sequence of the tenant; the account stays where it is until its last one has left.
  Account& enter(std::string_view tenant, TimePoint now);
  void leave(Account& account, TimePoint now);
  void charge(Account& account, std::int32_t num_prompt_tokens, std::int32_t num_generated_tokens,
              TimePoint now);
  // The tenant's recent service, half of it within the last ten seconds.
  static double recent_tokens(const Account& account, TimePoint now);

  // Whether a tenant with something unfinished has been served more by so many tokens.
  bool is_underserved(const Account& account, double tokens) const;
  // Whether a tenant that is there, or was within the last minute, is underserved by so many tokens or would be
  // if it came.
  bool may_be_underserved(double tokens, TimePoint now) const;
  const std::map<std::string, Account, std::less<>>& accounts() const { return accounts_; }

  // Tenants that have been there within the last minute.
  std::int32_t num_present(TimePoint now) const;
  // With something unfinished.
  std::int32_t num_unfinished_tenants() const { return num_unfinished_tenants_; }
  std::size_t num_accounts() const { return accounts_.size(); }

 private:
  static bool is_present(const Account& account, TimePoint now);
  void forget_oldest();

  std::map<std::string, Account, std::less<>> accounts_;
  double most_served_tokens_ = 0.0;  // of all counters
  double level_tokens_ = 0.0;        // the level that equal service of all present tenants would give
  double turn_scale_ = 1.0;
  std::int32_t num_unfinished_tenants_ = 0;
};

}  // namespace kvasir::admission
