#include "admission/load_snapshot.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>

#include "admission/ttft_target.h"

namespace kvasir::admission {
namespace {

constexpr std::int32_t kTypicalPromptTokens = 512;

double to_generate(const SequenceFacts& facts) {
  return facts.expected_generated_tokens - facts.num_generated_tokens;
}

// With every seat taken, in the middle of answers of this length.
double full_step_ms(const LoadFacts& facts, std::int32_t answer_tokens) {
  const std::int64_t num_seqs = facts.max_num_seqs;
  return facts.step_times.predict_ms(
      {.num_decoding = facts.max_num_seqs, .num_attended_tokens = num_seqs * (answer_tokens / 2 + 1)});
}

void add_to_group(const SequenceFacts& sequence, const LoadFacts& facts, WaitingGroup& group) {
  const bool is_long = yields(sequence, facts.rates, facts.ttft_target_ms);
  if (sequence.is_running) {
    const PromptWork work = remaining_work_of(sequence);
    group.running_prompts += work;
    if (sequence.is_prefill_only) group.running_prefill_only += work;
    if (is_long) group.running_long.push_back(work);
  } else {
    const PromptWork work = whole_work_of(sequence);
    ++group.num_sequences;
    group.prompts += work;
    if (sequence.is_prefill_only) group.prefill_only += work;
    if (is_long) group.long_ones.push_back(work);
  }
}

// Sorted, because each request may have a class of its own and a search for each would take long.
void describe_groups(const LoadFacts& facts, std::span<SequenceFacts> sequences, LoadSnapshot& load) {
  std::ranges::sort(sequences, {}, [](const SequenceFacts& s) {
    return std::tuple(std::string_view(s.account->name), s.priority, s.id);
  });
  const SequenceFacts* last = nullptr;
  for (const SequenceFacts& sequence : sequences) {
    const FairShare::Account& account = *sequence.account;
    if (last == nullptr || last->account != &account || last->priority != sequence.priority) {
      load.groups.push_back({.tenant = account.name,
                             .priority = sequence.priority,
                             .served_tokens = facts.fair_share.served_tokens(account)});
    }
    last = &sequence;
    add_to_group(sequence, facts, load.groups.back());
  }
}

// After their groups are there.
void describe_tenants(const LoadFacts& facts, LoadSnapshot& load) {
  load.entry_tokens = facts.fair_share.entry_tokens();
  load.num_tenants = facts.fair_share.num_unfinished_tenants();
  load.turn_scale = facts.fair_share.turn_scale();
  double recent_tokens = 0.0;
  for (const auto& [name, account] : facts.fair_share.accounts()) {
    recent_tokens += FairShare::recent_tokens(account, facts.now);
    const double served_tokens = facts.fair_share.served_tokens(account);
    if (account.num_unfinished == 0 && served_tokens > load.entry_tokens) {
      load.absent.push_back({.tenant = name, .served_tokens = served_tokens});
    }
  }
  load.seats = SeatReservation::of(facts.policy, facts.max_num_seqs, facts.fair_share.num_present(facts.now));
  for (WaitingGroup& group : load.groups) {
    const FairShare::Account& account = facts.fair_share.accounts().find(group.tenant)->second;
    group.num_running = account.num_running;
    if (recent_tokens > 0.0) {
      group.recent_share = FairShare::recent_tokens(account, facts.now) / recent_tokens;
    }
  }
}

}  // namespace

void LoadSnapshot::clear() {
  busy_seats_ms.clear();
  num_free_seats = 0;
  hold_ms = 0.0;
  num_holding = 0;
  rates = {};
  usual_answer_tokens = 0;
  full_step_ms = 0.0;
  typical_prompt_ms = 0.0;
  groups.clear();
  entry_tokens = 0.0;
  absent.clear();
  num_tenants = 0;
  turn_scale = 1.0;
  seats = {};
}

void LoadSnapshot::add_holding(std::int32_t num_sequences, std::int32_t max_tokens) {
  num_holding += num_sequences;
  hold_ms += full_step_ms * std::min(usual_answer_tokens, max_tokens) * num_sequences;
}

WaitingGroup& LoadSnapshot::group(std::string_view tenant, std::int32_t priority, double served_tokens) {
  const auto found = std::ranges::find_if(
      groups, [&](const WaitingGroup& g) { return g.tenant == tenant && g.priority == priority; });
  if (found != groups.end()) return *found;
  return groups.emplace_back(
      WaitingGroup{.tenant = std::string(tenant), .priority = priority, .served_tokens = served_tokens});
}

double LoadSnapshot::served_tokens(std::string_view tenant) const {
  const auto present = std::ranges::find(groups, tenant, &WaitingGroup::tenant);
  if (present != groups.end()) return present->served_tokens;
  const auto known = std::ranges::find(absent, tenant, &AbsentTenant::tenant);
  return known != absent.end() ? known->served_tokens : entry_tokens;
}

bool LoadSnapshot::has_backlog() const { return std::ranges::any_of(groups, &WaitingGroup::has_backlog); }

bool LoadSnapshot::has_backlog(std::string_view tenant) const {
  return std::ranges::any_of(
      groups, [&](const WaitingGroup& group) { return group.tenant == tenant && group.has_backlog(); });
}

void describe_load(const LoadFacts& facts, std::span<SequenceFacts> sequences, LoadSnapshot& load) {
  load.clear();
  load.num_free_seats = facts.max_num_seqs - facts.num_running;
  load.rates = facts.rates;
  load.usual_answer_tokens = facts.answer_lengths.predict(0, std::numeric_limits<std::int32_t>::max());
  load.full_step_ms = full_step_ms(facts, load.usual_answer_tokens);
  StepWork typical;
  typical.add_chunk(0, kTypicalPromptTokens);
  load.typical_prompt_ms = facts.step_times.predict_ms(typical);
  for (const SequenceFacts& sequence : sequences) {
    const double decode_ms = to_generate(sequence) * facts.rates.ms_per_generated_token;
    load.hold_ms += decode_ms;
    if (!sequence.is_running) continue;
    load.busy_seats_ms.push_back(facts.rates.ms(remaining_work_of(sequence)) +
                                 facts.rates.ms_per_prompt_token + decode_ms);
  }
  load.num_holding = static_cast<std::int32_t>(sequences.size());
  describe_groups(facts, sequences, load);
  describe_tenants(facts, load);
}

}  // namespace kvasir::admission
