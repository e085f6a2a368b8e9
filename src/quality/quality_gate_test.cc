#include "quality/quality_gate.h"

#include <gtest/gtest.h>

namespace kvasir::quality::quality_gate_test {
namespace {

KvPromise lossy(const char* policy, KvQuality quality = KvQuality::kGate, double budget = 0.2) {
  return {.policy = policy, .quality = quality, .budget = budget};
}

// What serves a request that asks for such a promise.
QualityGate::Treatment treatment(QualityGate& gate, const KvPromise& asked, std::string_view tenant = {}) {
  return gate.treatment_of({.policy = asked.policy, .budget = asked.budget, .quality = asked.quality}, asked.budget, tenant);
}

constexpr ShadowScore kBad = {.kl = 0.4, .num_tokens = 10, .num_agreed = 5};
constexpr ShadowScore kGood = {.kl = 0.002, .num_tokens = 10, .num_agreed = 10};

// Shadows until the policy is held back.
int break_it(QualityGate& gate, const KvPromise& served) {
  for (int i = 1; i <= 200; ++i) {
    if (gate.note(served, kBad)) return i;
  }
  return 0;
}

TEST(QualityGate, AskedTreatmentsServeWhileTheyKeepTheirPromise) {
  QualityGate gate({});
  for (int i = 0; i < 2000; ++i) EXPECT_FALSE(gate.note(lossy("ladder-learned"), kGood));
  EXPECT_EQ(treatment(gate, lossy("ladder-learned")).kv.policy, "ladder-learned");
  EXPECT_EQ(gate.treatment_of({}, 1.0).kv.policy, "ladder");
  ASSERT_EQ(gate.stats().size(), 1u);
  EXPECT_EQ(gate.stats()[0].num_scored, 2000);
  EXPECT_EQ(gate.stats()[0].state, KvPolicyState::kServing);
}

TEST(QualityGate, TheRequestBehindABreachIsServedByTheNextBest) {
  QualityGate gate({});
  EXPECT_GT(break_it(gate, lossy("ladder-learned")), 0);
  KvParams served = treatment(gate, lossy("ladder-learned")).kv;
  EXPECT_EQ(served.policy, "ladder");
  EXPECT_EQ(served.budget, 0.2);
  EXPECT_EQ(treatment(gate, lossy("snapkv")).kv.policy, "snapkv") << "others go on";
  EXPECT_GT(break_it(gate, lossy("ladder")), 0);
  EXPECT_TRUE(is_exact(treatment(gate, lossy("ladder-learned")).promise));
  EXPECT_TRUE(is_exact(treatment(gate, lossy("ladder")).promise));
  const std::vector<ShadowStats> stats = gate.stats();
  EXPECT_EQ(stats[0].promise.policy, "ladder");
  EXPECT_EQ(stats[0].state, KvPolicyState::kHeldBack);
  EXPECT_EQ(stats[0].num_held_back, 1);
  EXPECT_EQ(stats[0].num_downgraded, 1);
}

TEST(QualityGate, EachQualityHasAPromiseOfItsOwn) {
  QualityGate gate({});
  constexpr ShadowScore kFair = {.kl = 0.03, .num_tokens = 10, .num_agreed = 9};
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(gate.note(lossy("ladder", KvQuality::kBestEffort), kFair));
  int num = 0;
  while (!gate.note(lossy("ladder"), kFair)) ASSERT_LT(++num, 200);
}

TEST(QualityGate, ASmallBudgetThatBreaksItsPromiseHoldsNoLargerOneBack) {
  QualityGate gate({.resumes_by_itself = true});
  break_it(gate, lossy("ladder-learned", KvQuality::kGate, 0.1));
  EXPECT_TRUE(treatment(gate, lossy("ladder-learned", KvQuality::kGate, 0.1)).is_downgraded);
  EXPECT_TRUE(treatment(gate, lossy("ladder-learned", KvQuality::kGate, 0.03)).is_downgraded) << "it loses more";
  EXPECT_FALSE(treatment(gate, lossy("ladder-learned", KvQuality::kGate, 0.11)).is_downgraded);
  EXPECT_FALSE(treatment(gate, lossy("ladder-learned", KvQuality::kBestEffort, 0.1)).is_downgraded) << "it promises less";
  break_it(gate, lossy("ladder-learned", KvQuality::kGate, 0.2));
  EXPECT_EQ(treatment(gate, lossy("ladder-learned", KvQuality::kGate, 0.15)).kv.policy, "ladder");
  for (int i = 0; i < 501; ++i) gate.note(lossy("ladder"), kGood);
  EXPECT_FALSE(treatment(gate, lossy("ladder-learned")).is_downgraded) << "one after the other, both come back";
}

TEST(QualityGate, AWordBringsAllBudgetsOfAPolicyBack) {
  QualityGate gate({});
  break_it(gate, lossy("ladder-learned", KvQuality::kGate, 0.2));
  for (int i = 0; i < 300; ++i) gate.note(lossy("ladder"), kGood);
  break_it(gate, lossy("ladder-learned", KvQuality::kBestEffort, 0.1));
  for (int i = 0; i < 499; ++i) gate.note(lossy("ladder"), kGood);
  EXPECT_EQ(gate.resume("ladder-learned").error().kind, ErrorKind::kUsage) << "499 since the later one";
  gate.note(lossy("ladder"), kGood);
  EXPECT_TRUE(gate.resume("ladder-learned"));
  EXPECT_FALSE(treatment(gate, lossy("ladder-learned")).is_downgraded);
  EXPECT_FALSE(treatment(gate, lossy("ladder-learned", KvQuality::kBestEffort, 0.1)).is_downgraded);
}

TEST(QualityGate, UnknownIsNeitherGoodNorBad) {
  QualityGate gate({});
  for (int i = 0; i < 1000; ++i) gate.note_unknown(lossy("ladder"));
  EXPECT_EQ(treatment(gate, lossy("ladder")).kv.policy, "ladder");
  EXPECT_EQ(gate.stats()[0].num_unknown, 1000);
  EXPECT_EQ(gate.stats()[0].num_scored, 0);
  break_it(gate, lossy("ladder"));
  for (int i = 0; i < 1000; ++i) gate.note_unknown(lossy("q8"));
  EXPECT_FALSE(gate.resume("ladder")) << "unknown ones are no clean shadows";
}

TEST(QualityGate, ComesBackAfterCleanShadowsAndAWord) {
  QualityGate gate({});
  EXPECT_EQ(gate.resume("ladder").error().kind, ErrorKind::kNotFound);
  break_it(gate, lossy("ladder-learned"));
  for (int i = 0; i < 499; ++i) gate.note(lossy("ladder"), kGood);
  EXPECT_EQ(gate.resume("ladder-learned").error().kind, ErrorKind::kUsage);
  gate.note(lossy("ladder"), kGood);
  EXPECT_EQ(treatment(gate, lossy("ladder-learned")).kv.policy, "ladder") << "nobody has said so";
  EXPECT_TRUE(gate.resume("ladder-learned"));
  EXPECT_EQ(treatment(gate, lossy("ladder-learned")).kv.policy, "ladder-learned");
  EXPECT_GT(break_it(gate, lossy("ladder-learned")), 1) << "it starts with a clean sheet";
}

TEST(QualityGate, AnswersOnWhichNoPolicyActedAreUnknown) {
  QualityGate gate({.resumes_by_itself = true});
  break_it(gate, lossy("ladder-learned"));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(gate.note(lossy("ladder"), {.kl = 0.0, .num_tokens = 1, .num_agreed = 1}));
  EXPECT_EQ(treatment(gate, lossy("ladder-learned")).kv.policy, "ladder");
}

TEST(QualityGate, ComesBackByItselfWhereItMay) {
  QualityGate gate({.resumes_by_itself = true});
  break_it(gate, lossy("ladder-learned"));
  for (int i = 0; i < 500; ++i) gate.note(lossy("ladder"), kGood);
  EXPECT_EQ(treatment(gate, lossy("ladder-learned")).kv.policy, "ladder-learned");
}

TEST(QualityGate, AnExactAnswerThatDivergesIsAnAlarmAndNoBreach) {
  QualityGate gate({});
  EXPECT_FALSE(gate.note({}, {.kl = 0.0, .num_tokens = 3, .num_agreed = 3}));
  const auto alarm = gate.note({}, {.kl = 1e-9, .num_tokens = 3, .num_agreed = 3});
  ASSERT_TRUE(alarm);
  EXPECT_NE(alarm->find("exact"), std::string::npos);
  EXPECT_EQ(treatment(gate, lossy("ladder")).kv.policy, "ladder");
}

TEST(QualityGate, ACanaryThatBreaksItsPromiseGivesItsTenantsBack) {
  QualityGate gate({.champion = "ladder", .canary = "ladder-learned"});
  std::string tenant;
  for (int i = 0; i < 1000 && tenant.empty(); ++i) {
    if (treatment(gate, lossy("ladder"), std::to_string(i)).kv.policy == "ladder-learned") tenant = std::to_string(i);
  }
  ASSERT_FALSE(tenant.empty()) << "one tenant of a hundred has it";
  EXPECT_GT(break_it(gate, lossy("ladder-learned")), 0);
  EXPECT_EQ(treatment(gate, lossy("ladder"), tenant).kv.policy, "ladder");
  EXPECT_FALSE(treatment(gate, lossy("ladder"), tenant).is_downgraded) << "they had asked for it";
}

TEST(QualityGate, BesideAnotherModelAnswersWithoutAPolicyHaveAPromiseToo) {
  QualityGate gate({.is_against_another = true});
  EXPECT_FALSE(gate.note({}, {.kl = 0.004, .num_tokens = 3, .num_agreed = 3})) << "it is no alarm";
  EXPECT_GT(break_it(gate, {}), 0);
  EXPECT_EQ(gate.stats()[0].state, KvPolicyState::kServing) << "nothing is held back for it";
  EXPECT_TRUE(is_exact(gate.treatment_of({}, 1.0).promise));
  EXPECT_EQ(treatment(gate, lossy("ladder")).kv.policy, "ladder");
}

}  // namespace
}  // namespace kvasir::quality::quality_gate_test
