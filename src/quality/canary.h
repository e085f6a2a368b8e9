// A KV policy that is new to a server, given to more and more of its tenants.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "quality/shadow_score.h"

namespace kvasir::quality {

// Costs of an answer that another policy could have.
struct ServedCost {
  double decode_ms_per_token = 0.0;
  std::int32_t num_preemptions = 0;
};

enum class CanaryNews : std::uint8_t { kNone, kNextStage, kServesAll, kIsWorse };

// A tenant is always in the same place of the order in which tenants get it. A stage ends after kShadowsPerStage scored
// answers of the new policy, with a comparison to those of the old one in the same stage. With few of the old one the
// promises alone decide, which is QualityGate's part.
//
// Thread safety: none.
class Canary {
 public:
  // `policy` takes the place of `champion`. Empty: there is none.
  Canary(std::string champion, std::string policy);

  bool exists() const { return !policy_.empty(); }
  const std::string& policy() const { return policy_; }
  // The policy for a request of the tenant that would be served by `asked`.
  std::string_view policy_for(std::string_view asked, std::string_view tenant) const;
  // A scored answer under one of the two.
  CanaryNews note(std::string_view policy, const ShadowScore& score, const ServedCost& cost);
  double share() const { return has_failed_ ? 0.0 : kShares[stage_]; }
  // It serves nobody any more.
  void stop() { has_failed_ = true; }

  static constexpr std::array<double, 4> kShares = {0.01, 0.05, 0.25, 1.0};
  static constexpr std::int64_t kShadowsPerStage = 200;
  static constexpr std::int64_t kShadowsToCompare = 50;

 private:
  struct Arm {
    std::int64_t count = 0;
    double kl = 0.0, decode_ms_per_token = 0.0, preemptions = 0.0;  // sums
  };
  bool is_worse() const;

  std::string champion_, policy_;
  std::size_t stage_ = 0;
  bool has_failed_ = false;
  Arm old_, new_;  // of this stage
};

}  // namespace kvasir::quality
