#include "quality/canary.h"

#include <span>
#include <utility>

#include "quality/hashed_place.h"

namespace kvasir::quality {
namespace {

// Means of the new arm may be so much of the old one's.
constexpr double kMostKl = 1.25, kMostTime = 1.25, kMostPreemptions = 1.5;
constexpr double kPreemptionsThatCount = 0.05;  // a request

constexpr kv::SipKey kKey = {.k0 = 1, .k1 = 2};  // the same in each process, so that a tenant keeps its place

}  // namespace

Canary::Canary(std::string champion, std::string policy) : champion_(std::move(champion)), policy_(std::move(policy)) {}

std::string_view Canary::policy_for(std::string_view asked, std::string_view tenant) const {
  return exists() && asked == champion_ && hashed_place(kKey, std::as_bytes(std::span(tenant))) < share() ? std::string_view(policy_) : asked;
}

bool Canary::is_worse() const {
  if (old_.count < kShadowsToCompare) return false;
  const auto is_more = [&](double Arm::*sum, double factor, double least) {
    const double before = old_.*sum / static_cast<double>(old_.count), now = new_.*sum / static_cast<double>(new_.count);
    return now > factor * before + least;
  };
  return is_more(&Arm::kl, kMostKl, 0.0) || is_more(&Arm::decode_ms_per_token, kMostTime, 0.0) ||
         is_more(&Arm::preemptions, kMostPreemptions, kPreemptionsThatCount);
}

CanaryNews Canary::note(std::string_view policy, const ShadowScore& score, const ServedCost& cost) {
  if (!exists() || has_failed_ || (policy != policy_ && policy != champion_)) return CanaryNews::kNone;
  Arm& arm = policy == policy_ ? new_ : old_;
  ++arm.count;
  arm.kl += score.kl;
  arm.decode_ms_per_token += cost.decode_ms_per_token;
  arm.preemptions += cost.num_preemptions;
  if (new_.count < kShadowsPerStage || stage_ + 1 == kShares.size()) return CanaryNews::kNone;
  if (is_worse()) {
    has_failed_ = true;
    return CanaryNews::kIsWorse;
  }
  ++stage_;
  old_ = new_ = {};
  return stage_ + 1 == kShares.size() ? CanaryNews::kServesAll : CanaryNews::kNextStage;
}

}  // namespace kvasir::quality
