#include "quality/quality_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/kv_params.h"

namespace kvasir::quality {
namespace {

constexpr std::string_view kUntrained = "ladder";

KvParams exact() { return {.policy = "none", .quality = KvQuality::kExact}; }

std::string text_of(const KvPromise& promise) {
  return fmt::format("{} with budgets up to {:.0f}% at {}", promise.policy, 100 * promise.budget, name_of(promise.quality));
}

}  // namespace

bool is_exact(const KvPromise& served) { return served.policy == KvPromise{}.policy; }

bool is_untouched(const KvPromise& served, const ShadowScore& score) { return score.kl == 0.0 && !is_exact(served); }

bool QualityGate::is_held_back(const KvPromise& promise) const {
  return std::ranges::any_of(clean_since_, [&](const auto& held) { return covers(held.first, promise); });
}

QualityGate::Treatment QualityGate::treatment_of(KvParams asked, double budget, std::string_view tenant) {
  if (!is_exact(promise_of(asked, budget))) asked.policy = canary_.policy_for(asked.policy, tenant);
  KvPromise promise = promise_of(asked, budget);
  if (!is_held_back(promise)) return {.kv = std::move(asked), .promise = std::move(promise)};
  ++row_of(promise).stats.num_downgraded;
  asked.policy = kUntrained;
  promise = promise_of(asked, budget);
  if (is_exact(promise) || is_held_back(promise)) return {.kv = exact(), .promise = {}, .is_downgraded = true};
  return {.kv = std::move(asked), .promise = std::move(promise), .is_downgraded = true};
}

QualityGate::Row& QualityGate::row_of(const KvPromise& served) {
  KvPromise key = served;
  if (is_exact(served) && config_.is_against_another) key.quality = KvQuality::kGate;
  const double promise = key.quality == KvQuality::kBestEffort ? config_.promised_kl_best_effort : config_.promised_kl;
  const auto [at, is_new] = rows_.try_emplace(key, Row{.stats = {}, .evidence = EProcess(promise)});
  if (is_new) {
    at->second.stats.promise = key;
    at->second.stats.promised_kl = key.quality == KvQuality::kExact ? 0.0 : promise;
  }
  return at->second;
}

std::optional<std::string> QualityGate::note(const KvPromise& served, const ShadowScore& score, const ServedCost& cost) {
  std::optional<std::string> news = judge(served, score);
  if (is_exact(served) || news) return news;
  return advance_canary(served, score, cost);
}

std::optional<std::string> QualityGate::advance_canary(const KvPromise& served, const ShadowScore& score, const ServedCost& cost) {
  switch (canary_.note(served.policy, score, cost)) {
    case CanaryNews::kNone: return std::nullopt;
    case CanaryNews::kNextStage: return fmt::format("kv-canary: {} serves {:.0f}% of tenants", canary_.policy(), 100 * canary_.share());
    case CanaryNews::kServesAll: return fmt::format("kv-canary: {} serves all tenants", canary_.policy());
    case CanaryNews::kIsWorse: return fmt::format("kv-canary: {} is worse than {}, which serves all tenants again", canary_.policy(), config_.champion);
  }
  return std::nullopt;
}

std::optional<std::string> QualityGate::judge(const KvPromise& served, const ShadowScore& score) {
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
  if (stats.promise.quality == KvQuality::kExact) {
    if (score.kl == 0.0) return resume_if_due();
    return fmt::format("kv-shadow: an exact answer diverges from itself by {:.2g} nats a token; the machine or the program is at fault, not a policy",
                       score.kl);
  }
  row.evidence.add(score.kl);
  stats.log10_evidence = row.evidence.log10_evidence();
  if (row.evidence.evidence() < kEvidenceOfBreach || is_held_back(stats.promise)) {
    return score.kl <= stats.promised_kl ? resume_if_due() : std::nullopt;
  }
  return hold_back(row, served);
}

// Its evidence is enough.
std::optional<std::string> QualityGate::hold_back(Row& row, const KvPromise& served) {
  ShadowStats& stats = row.stats;
  const std::string finding = fmt::format("{} answers diverge by {:.4f} nats a token in the mean, {:.4f} is promised", row.evidence.count(),
                                          stats.kl_sum / static_cast<double>(stats.num_scored), stats.promised_kl);
  if (is_exact(served)) {
    row.evidence = EProcess(stats.promised_kl);
    return fmt::format("kv-shadow: the model itself, beside the one that scores: {}", finding);
  }
  if (served.policy == canary_.policy()) canary_.stop();
  ++stats.num_held_back;
  clean_since_[served] = 0;
  KvPromise next = served;
  next.policy = kUntrained;
  return fmt::format("kv-shadow: {} is held back: {}; {} serves", text_of(served), finding, is_held_back(next) ? "no policy" : kUntrained);
}

void QualityGate::note_unknown(const KvPromise& served) { ++row_of(served).stats.num_unknown; }

// Another answer has kept its promise.
std::optional<std::string> QualityGate::resume_if_due() {
  for (auto& [broken, clean] : clean_since_) ++clean;
  const auto due = std::ranges::find_if(clean_since_, [](const auto& held) { return held.second >= kShadowsToResume; });
  if (!config_.resumes_by_itself || due == clean_since_.end()) return std::nullopt;
  const KvPromise back = due->first;
  restart(back);
  return fmt::format("kv-shadow: {} serves again after {} clean shadows", text_of(back), kShadowsToResume);
}

void QualityGate::restart(const KvPromise& broken) {
  clean_since_.erase(broken);
  for (auto& [promise, row] : rows_) {
    if (!covers(broken, promise)) continue;
    row.evidence = EProcess(row.stats.promised_kl);
    row.stats.log10_evidence = row.evidence.log10_evidence();
  }
}

Status QualityGate::resume(std::string_view policy) {
  std::vector<KvPromise> held;
  std::int64_t fewest = kShadowsToResume;
  for (const auto& [broken, clean] : clean_since_) {
    if (broken.policy != policy) continue;
    held.push_back(broken);
    fewest = std::min(fewest, clean);
  }
  if (held.empty()) return make_error(ErrorKind::kNotFound, fmt::format("policy: {} is not held back", policy), "policy");
  if (fewest < kShadowsToResume) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("policy: {} needs {} clean shadows before it serves again, there were {}", policy, kShadowsToResume, fewest), "policy");
  }
  for (const KvPromise& broken : held) restart(broken);
  return {};
}

std::vector<ShadowStats> QualityGate::stats() const {
  std::vector<ShadowStats> all;
  for (const auto& [key, row] : rows_) {
    all.push_back(row.stats);
    all.back().state = is_held_back(key) ? KvPolicyState::kHeldBack : KvPolicyState::kServing;
  }
  return all;
}

}  // namespace kvasir::quality
