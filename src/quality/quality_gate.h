// Which KV policy serves: one whose shadows say that it breaks its promise is held back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// In the place of a policy that is held back comes the ladder that needs no training, and for that one exactness. A policy
// comes back when kShadowsToResume answers since have kept their promise, and an operator says so.
//
// Thread safety: none.
class QualityGate {
 public:
  explicit QualityGate(const GateConfig& config) : config_(config), canary_(config.champion, config.canary) {}

  struct Treatment {
    KvParams kv;
    bool is_downgraded = false;  // the policy is held back
  };
  // What serves a tenant's request that asks for `asked`. Counts it where it is downgraded.
  Treatment treatment_of(KvParams asked, std::string_view tenant = {});
  // An answer under this treatment was scored. One on which no policy has acted yet is unknown. A line for the log when something has just changed, or is wrong.
  std::optional<std::string> note(const KvParams& served, const ShadowScore& score, const ServedCost& cost = {});
  void note_unknown(const KvParams& served);
  // Errors: kNotFound (no such policy is held back), kUsage (too few clean shadows since).
  Status resume(std::string_view policy);
  bool is_held_back(const std::string& policy) const;

  std::vector<ShadowStats> stats() const;

  static constexpr double kEvidenceOfBreach = 1000.0;
  static constexpr std::int64_t kShadowsToResume = 500;

 private:
  struct Row {
    ShadowStats stats;
    EProcess evidence;
  };
  using Key = std::pair<std::string, KvQuality>;

  std::optional<std::string> judge(const KvParams& served, const ShadowScore& score);
  std::optional<std::string> advance_canary(const KvParams& served, const ShadowScore& score, const ServedCost& cost);
  Row& row_of(const KvParams& kv);
  std::optional<std::string> resume_if_due();
  void restart(const std::string& policy);

  GateConfig config_;
  Canary canary_;
  std::map<Key, Row> rows_;
  std::map<std::string, std::int64_t> clean_since_;  // by policy that is held back
};

// No policy acts on it.
bool is_exact(const KvParams& kv);

// The answer diverges by nothing, so its policy has not acted yet: it says nothing of the policy.
bool is_untouched(const KvParams& served, const ShadowScore& score);

}  // namespace kvasir::quality
