#include "base/oversized_integers.h"

#include <gtest/gtest.h>

namespace kvasir::oversized_integers_test {
namespace {

TEST(OversizedIntegers, BecomeFractionsAndNothingElseChanges) {
  const auto changed = with_oversized_integers_as_fractions(
      R"({"a":18446744073709551616,"b":[-9223372036854775809 , 5],"c":"99999999999999999999\\\"99999999999999999999"})");
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(*changed,
            R"({"a":18446744073709551616e0,"b":[-9223372036854775809e0 , 5],"c":"99999999999999999999\\\"99999999999999999999"})");
}

TEST(OversizedIntegers, AreNoneAmongThoseOf64BitsFractionsAndTexts) {
  for (const char* const json : {"{}", "", "[18446744073709551615,-9223372036854775808]", "[1e400,1.5]",
                                 R"(["99999999999999999999)", "[--99999999999999999999]"}) {
    EXPECT_FALSE(with_oversized_integers_as_fractions(json).has_value()) << json;
  }
}

}  // namespace
}  // namespace kvasir::oversized_integers_test
