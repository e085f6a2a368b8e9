// What each tenant has been given, so that nobody gets more by asking for more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sched/output_lengths.h"
#include "sched/scheduler_output.h"

namespace kvasir::sched {

// Virtual token counters (Sheng et al., "Fairness in Serving Large Language Models", 2024): whoever has been
// served least is next. A tenant that comes back brings along little of what it left unused: its counter
// begins at most a credit below the least of those that are there, or the last one's that was.
//
// Thread safety: none; the engine thread is the only caller.
class TenantLedger {
 public:
  // Two turns of WaitingConfig::tenant_quantum_tokens: whoever asks for less than its share is ahead of those
  // who ask for more, also while it is served.
  static constexpr double kCreditTokens = 8192.0;

  struct Account {
    std::string name;
    double served_tokens = 0.0;  // a generated one counts as two of a prompt
    double recent_tokens = 0.0;  // of these, older ones forgotten; as of charged_at
    TimePoint charged_at{};
    std::int32_t num_unfinished = 0;  // sequences, waiting or running
    std::int32_t num_running = 0;     // of them
    TimePoint last_seen{};            // with something unfinished
    OutputLengths lengths;            // of its answers
  };

  // One more sequence of the tenant; the account stays where it is until its last one has left.
  Account& enter(std::string_view tenant, TimePoint now);
  void leave(Account& account, TimePoint now);
  void charge(Account& account, std::int32_t num_prompt_tokens, std::int32_t num_generated_tokens,
              TimePoint now);
  // What the tenant was given lately, half of it within the last ten seconds.
  static double recent_tokens(const Account& account, TimePoint now);

  // Whether somebody who is there has been served more by so many tokens.
  bool is_owed(const Account& account, double tokens) const;
  // Whether a tenant that is there, or was within the last minute, is owed so many or would be if it came.
  bool may_owe(double tokens, TimePoint now) const;
  // What a tenant with nothing unfinished begins with at least.
  double entry_tokens() const;
  const std::map<std::string, Account, std::less<>>& accounts() const { return accounts_; }

  // Tenants that have been there within the last minute.
  std::int32_t num_present(TimePoint now) const;
  std::size_t num_accounts() const { return accounts_.size(); }

 private:
  static bool is_present(const Account& account, TimePoint now);
  void forget_oldest();

  std::map<std::string, Account, std::less<>> accounts_;
  double last_served_tokens_ = 0.0;  // of the tenant that left last
};

}  // namespace kvasir::sched
