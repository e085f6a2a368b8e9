#include "admission/output_lengths.h"

#include <gtest/gtest.h>

namespace kvasir::admission::output_lengths_test {
namespace {

TEST(OutputLengths, SaysWhatIsUsualUntilItHasSeenAnswers) {
  const OutputLengths lengths;
  EXPECT_EQ(lengths.predict(0, 10'000), 256);
  EXPECT_EQ(lengths.predict(0, 100), 100);
  EXPECT_EQ(lengths.predict(1000, 10'000), 2000);
}

TEST(OutputLengths, ThreeOfFourAnswersEndByWhatItSays) {
  OutputLengths lengths;
  for (int i = 0; i < 400; ++i) lengths.observe(i % 5 == 0 ? 1000 : 20);
  EXPECT_GE(lengths.predict(0, 10'000), 20);
  EXPECT_LE(lengths.predict(0, 10'000), 24);  // within a quarter of an octave
  // All answers that got longer than that have 1000.
  EXPECT_GE(lengths.predict(30, 10'000), 1000);
  EXPECT_LE(lengths.predict(30, 10'000), 1190);
  EXPECT_EQ(lengths.predict(30, 500), 500);
}

TEST(OutputLengths, ForgetsWhatIsLongAgo) {
  OutputLengths lengths;
  for (int i = 0; i < 100; ++i) lengths.observe(2000);
  for (int i = 0; i < 200; ++i) lengths.observe(10);
  EXPECT_LE(lengths.predict(0, 10'000), 12);
}

TEST(OutputLengths, AlwaysLeavesATokenToCome) {
  OutputLengths lengths;
  lengths.observe(1);
  for (int generated = 0; generated < 300; ++generated) {
    EXPECT_GT(lengths.predict(generated, 10'000), generated);
    EXPECT_EQ(lengths.predict(generated, generated + 1), generated + 1);
  }
}

}  // namespace
}  // namespace kvasir::admission::output_lengths_test
