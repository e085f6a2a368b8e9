// Which KV policy serves: where shadows say that a promise is broken, its policy is held back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/request.h"
#include "kvasir/result.h"
#include "kvasir/shadow_stats.h"
#include "quality/canary.h"
#include "base/e_process.h"
#include "quality/shadow_score.h"

namespace kvasir::quality {

struct GateConfig {
  double promised_kl = 0.01;              // nats a token, of answers whose quality is kGate
  double promised_kl_best_effort = 0.05;  // and of those whose budget always holds
  bool resumes_by_itself = false;
  // Another model scores: answers without a policy promise what kGate does, as "none", and nothing is held back for them.
  bool is_against_another = false;
  std::string champion = {}, canary = {};  // a policy that takes the champion's place, tenant by tenant; empty: none
};

// Each quality and each step of budgets has a promise, so a request for a tiny budget holds nothing back for others. In the
// place of a policy that is held back comes the ladder that needs no training, and for that one exactness. A policy comes back
// when kShadowsToResume answers since have kept their promise, and an operator says so.
//
// Thread safety: none.
class QualityGate {
 public:
  explicit QualityGate(const GateConfig& config) : config_(config), canary_(config.champion, config.canary) {}

  struct Treatment {
    KvParams kv;
    KvPromise promise;           // of the answer
    bool is_downgraded = false;  // what was asked for is held back
  };
  // What serves a tenant's request that asks for `asked`, with a budget of such a share. Counts it where it is downgraded.
  Treatment treatment_of(KvParams asked, double budget, std::string_view tenant = {});
  // An answer with this promise was scored. One on which no policy has acted yet is unknown. A line for the log when something has just changed, or is wrong.
  std::optional<std::string> note(const KvPromise& served, const ShadowScore& score, const ServedCost& cost = {});
  void note_unknown(const KvPromise& served);
  // Errors: kNotFound (nothing of this policy is held back), kUsage (too few clean shadows since).
  Status resume(std::string_view policy);
  bool is_held_back(const KvPromise& promise) const;

  std::vector<ShadowStats> stats() const;

  static constexpr double kEvidenceOfBreach = 1000.0;
  static constexpr std::int64_t kShadowsToResume = 500;

 private:
  struct Row {
    ShadowStats stats;
    EProcess evidence;
  };

  std::optional<std::string> judge(const KvPromise& served, const ShadowScore& score);
  std::optional<std::string> hold_back(Row& row, const KvPromise& served);
  std::optional<std::string> advance_canary(const KvPromise& served, const ShadowScore& score, const ServedCost& cost);
  Row& row_of(const KvPromise& served);
  std::optional<std::string> resume_if_due();
  void restart(const KvPromise& broken);

  GateConfig config_;
  Canary canary_;
  std::map<KvPromise, Row> rows_;
  std::map<KvPromise, std::int64_t> clean_since_;  // by promise that was broken; what it covers is held back
};

// No policy acts on it.
bool is_exact(const KvPromise& served);

// The answer diverges by nothing, so its policy has not acted yet: it says nothing of the policy.
bool is_untouched(const KvPromise& served, const ShadowScore& score);

}  // namespace kvasir::quality
