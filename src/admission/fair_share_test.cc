#include "admission/fair_share.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace kvasir::admission::fair_share_test {
namespace {

TimePoint at_s(std::int64_t s) { return TimePoint(std::chrono::seconds(s)); }

TEST(FairShare, WhoComesBackHasLittleCreditFromItsAbsence) {
  FairShare ledger;
  FairShare::Account& busy = ledger.enter("busy", at_s(0));
  ledger.charge(busy, 10'000, 5'000, at_s(0));
  EXPECT_EQ(ledger.served_tokens(busy), 20'000.0);
  EXPECT_EQ(ledger.served_tokens(ledger.enter("new", at_s(1))), 20'000 - FairShare::kCreditTokens);
}

TEST(FairShare, NorFromATimeWhenNobodyWasThere) {
  FairShare ledger;
  FairShare::Account& busy = ledger.enter("busy", at_s(0));
  ledger.charge(busy, 10'000, 0, at_s(0));
  FairShare::Account& last = ledger.enter("last", at_s(0));
  ledger.leave(busy, at_s(1));
  ledger.leave(last, at_s(1));
  EXPECT_EQ(ledger.served_tokens(ledger.enter("new", at_s(2))), 10'000 - FairShare::kCreditTokens);
  EXPECT_EQ(ledger.served_tokens(ledger.enter("busy", at_s(3))), 10'000.0)
      << "what it was given it was given";
}

TEST(FairShare, WhoIsThereKeepsItsCounterAsFarAsTheCreditGoes) {
  FairShare ledger;
  FairShare::Account& a = ledger.enter("a", at_s(0));
  FairShare::Account& b = ledger.enter("b", at_s(0));
  ledger.charge(a, 100, 0, at_s(0));
  EXPECT_EQ(ledger.served_tokens(ledger.enter("b", at_s(1))), 0.0);
  EXPECT_EQ(b.num_unfinished, 2);
  ledger.charge(a, 100'000, 0, at_s(2));  // while b has a stream and asks for no more
  EXPECT_EQ(ledger.served_tokens(b), 100'100 - FairShare::kCreditTokens);
  ledger.charge(b, 10, 0, at_s(3));
  EXPECT_EQ(ledger.served_tokens(b), 100'110 - FairShare::kCreditTokens);
}

TEST(FairShare, OwesTheDifferenceToWhomeverIsThereAndHasHadMore) {
  FairShare ledger;
  FairShare::Account& a = ledger.enter("a", at_s(0));
  FairShare::Account& b = ledger.enter("b", at_s(0));
  ledger.charge(a, 1000, 0, at_s(0));
  EXPECT_TRUE(ledger.is_underserved(b, 1000.0));
  EXPECT_FALSE(ledger.is_underserved(b, 1001.0));
  EXPECT_FALSE(ledger.is_underserved(a, 1.0));
  ledger.leave(a, at_s(1));
  EXPECT_FALSE(ledger.is_underserved(b, 1000.0)) << "nobody is there who could give it";
}

TEST(FairShare, MayOweWhoWasThereLately) {
  FairShare ledger;
  FairShare::Account& busy = ledger.enter("busy", at_s(0));
  ledger.leave(ledger.enter("quiet", at_s(0)), at_s(0));
  EXPECT_FALSE(ledger.may_be_underserved(1000.0, at_s(1)));
  ledger.charge(busy, 1000, 0, at_s(1));
  EXPECT_TRUE(ledger.may_be_underserved(1000.0, at_s(1)));
  EXPECT_FALSE(ledger.may_be_underserved(1000.0, at_s(61))) << "it was there a minute ago";
  ledger.charge(busy, 100'000, 0, at_s(1));
  EXPECT_TRUE(ledger.may_be_underserved(FairShare::kCreditTokens, at_s(2)));
  EXPECT_FALSE(ledger.may_be_underserved(FairShare::kCreditTokens + 1, at_s(2))) << "absence earns no more";
}

TEST(FairShare, ForgetsHalfOfWhatWasRecentInTenSeconds) {
  FairShare ledger;
  FairShare::Account& account = ledger.enter("a", at_s(0));
  ledger.charge(account, 100, 50, at_s(0));
  EXPECT_DOUBLE_EQ(FairShare::recent_tokens(account, at_s(10)), 100.0);
  ledger.charge(account, 10, 0, at_s(20));
  EXPECT_DOUBLE_EQ(FairShare::recent_tokens(account, at_s(20)), 60.0);
  EXPECT_DOUBLE_EQ(ledger.served_tokens(account), 210.0);
}

TEST(FairShare, SaysWithWhatATenantBegins) {
  FairShare ledger;
  EXPECT_EQ(ledger.entry_tokens(), 0.0);
  ledger.charge(ledger.enter("busy", at_s(0)), 20'000, 0, at_s(0));
  EXPECT_EQ(ledger.entry_tokens(), 20'000 - FairShare::kCreditTokens);
  EXPECT_EQ(ledger.served_tokens(ledger.enter("new", at_s(1))), 20'000 - FairShare::kCreditTokens);
}

TEST(FairShare, WhoWasThereWithinAMinuteIsPresent) {
  FairShare ledger;
  EXPECT_EQ(ledger.num_present(at_s(0)), 0);
  ledger.enter("a", at_s(0));
  FairShare::Account& b = ledger.enter("b", at_s(1));
  EXPECT_EQ(ledger.num_present(at_s(1000)), 2);
  ledger.leave(b, at_s(1001));
  EXPECT_EQ(ledger.num_present(at_s(1060)), 2);
  EXPECT_EQ(ledger.num_present(at_s(1062)), 1);
}

TEST(FairShare, ForgetsThoseThatLeftFirst) {
  FairShare ledger;
  FairShare::Account& there = ledger.enter("there", at_s(0));
  for (int i = 0; i < 5000; ++i) ledger.leave(ledger.enter(std::to_string(i), at_s(i)), at_s(i));
  EXPECT_LE(ledger.num_accounts(), 1024u);
  EXPECT_EQ(&ledger.enter("there", at_s(6000)), &there);
}

}  // namespace
}  // namespace kvasir::admission::fair_share_test
