#include "quality/quality_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/kv_params.h"

namespace kvasir::quality {
namespace {

constexpr std::string_view kUntrained = "ladder";

KvParams exact() { return {.policy = "none", .quality = KvQuality::kExact}; }

}  // namespace

bool is_exact(const KvParams& kv) { return !policy_settings(kv).is_lossy(); }

bool is_untouched(const KvParams& served, const ShadowScore& score) { return score.kl == 0.0 && !is_exact(served); }

bool QualityGate::is_held_back(const std::string& policy) const { return clean_since_.contains(policy); }

QualityGate::Treatment QualityGate::treatment_of(KvParams asked, std::string_view tenant) {
  if (!is_exact(asked) && !is_held_back(canary_.policy())) asked.policy = canary_.policy_for(asked.policy, tenant);
  if (is_exact(asked) || !is_held_back(asked.policy)) return {std::move(asked)};
  ++row_of(asked).stats.num_downgraded;
  KvParams other = asked;
  other.policy = kUntrained;
  return {is_held_back(other.policy) || is_exact(other) ? exact() : std::move(other), true};
}

QualityGate::Row& QualityGate::row_of(const KvParams& kv) {
  const KvQuality of_exact = config_.is_against_another ? KvQuality::kGate : KvQuality::kExact;
  const Key key = is_exact(kv) ? Key{"none", of_exact} : Key{kv.policy, kv.quality};
  const double promise = key.second == KvQuality::kBestEffort ? config_.promised_kl_best_effort : config_.promised_kl;
  const auto [at, is_new] = rows_.try_emplace(key, Row{.stats = {}, .evidence = EProcess(promise)});
  if (is_new) {
    at->second.stats.policy = key.first;
    at->second.stats.quality = key.second;
    at->second.stats.promised_kl = key.second == KvQuality::kExact ? 0.0 : promise;
  }
  return at->second;
}

std::optional<std::string> QualityGate::note(const KvParams& served, const ShadowScore& score, const ServedCost& cost) {
  std::optional<std::string> news = judge(served, score);
  if (is_exact(served) || news) return news;
  return advance_canary(served, score, cost);
}

std::optional<std::string> QualityGate::advance_canary(const KvParams& served, const ShadowScore& score, const ServedCost& cost) {
  switch (canary_.note(served.policy, score, cost)) {
    case CanaryNews::kNone: return std::nullopt;
    case CanaryNews::kNextStage: return fmt::format("kv-canary: {} serves {:.0f}% of tenants", canary_.policy(), 100 * canary_.share());
    case CanaryNews::kServesAll: return fmt::format("kv-canary: {} serves all tenants", canary_.policy());
    case CanaryNews::kIsWorse: return fmt::format("kv-canary: {} is worse than {}, which serves all tenants again", canary_.policy(), config_.champion);
  }
  return std::nullopt;
}

std::optional<std::string> QualityGate::judge(const KvParams& served, const ShadowScore& score) {
  Row& row = row_of(served);
  ShadowStats& stats = row.stats;
  if (is_untouched(served, score)) {
    ++stats.num_unknown;
    return std::nullopt;
  }
  const auto bucket = std::ranges::lower_bound(kShadowKlBounds, score.kl) - kShadowKlBounds.begin();
  ++stats.by_kl[static_cast<std::size_t>(bucket)];
  ++stats.num_scored;
  stats.kl_sum += score.kl;
  stats.num_tokens += score.num_tokens;
  stats.num_tokens_agreed += score.num_agreed;
  if (stats.quality == KvQuality::kExact) {
    if (score.kl == 0.0) return resume_if_due();
    return fmt::format("kv-shadow: an exact answer diverges from itself by {:.2g} nats a token; the machine or the program is at fault, not a policy",
                       score.kl);
  }
  row.evidence.add(score.kl);
  stats.log10_evidence = row.evidence.log10_evidence();
  if (row.evidence.evidence() < kEvidenceOfBreach || is_held_back(stats.policy)) {
    return score.kl <= stats.promised_kl ? resume_if_due() : std::nullopt;
  }
  if (stats.policy == canary_.policy()) canary_.stop();
  const std::string finding = fmt::format("{} answers diverge by {:.4f} nats a token in the mean, {:.4f} is promised", row.evidence.count(),
                                          stats.kl_sum / static_cast<double>(stats.num_scored), stats.promised_kl);
  if (is_exact(served)) {
    row.evidence = EProcess(stats.promised_kl);
    return fmt::format("kv-shadow: the model itself, beside the one that scores: {}", finding);
  }
  ++stats.num_held_back;
  clean_since_[stats.policy] = 0;
  KvParams next = served;
  next.policy = kUntrained;
  const bool is_last = is_held_back(next.policy) || is_exact(next);
  return fmt::format("kv-shadow: {} is held back: {}; {} serves", stats.policy, finding, is_last ? "no policy" : kUntrained);
}

void QualityGate::note_unknown(const KvParams& served) { ++row_of(served).stats.num_unknown; }

// Another answer has kept its promise.
std::optional<std::string> QualityGate::resume_if_due() {
  for (auto& [policy, clean] : clean_since_) {
    ++clean;
    if (!config_.resumes_by_itself || clean < kShadowsToResume) continue;
    const std::string back = policy;
    restart(back);
    return fmt::format("kv-shadow: {} serves again after {} clean shadows", back, kShadowsToResume);
  }
  return std::nullopt;
}

void QualityGate::restart(const std::string& policy) {
  clean_since_.erase(policy);
  for (auto& [key, row] : rows_) {
    if (key.first != policy) continue;
    row.evidence = EProcess(row.stats.promised_kl);
    row.stats.log10_evidence = row.evidence.log10_evidence();
  }
}

Status QualityGate::resume(std::string_view policy) {
  const auto held = clean_since_.find(std::string(policy));
  if (held == clean_since_.end()) return make_error(ErrorKind::kNotFound, fmt::format("policy: {} is not held back", policy), "policy");
  if (held->second < kShadowsToResume) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("policy: {} needs {} clean shadows before it serves again, there were {}", policy, kShadowsToResume, held->second), "policy");
  }
  restart(held->first);
  return {};
}

std::vector<ShadowStats> QualityGate::stats() const {
  std::vector<ShadowStats> all;
  for (const auto& [key, row] : rows_) {
    all.push_back(row.stats);
    all.back().state = is_held_back(key.first) ? KvPolicyState::kHeldBack : KvPolicyState::kServing;
  }
  return all;
}

}  // namespace kvasir::quality
