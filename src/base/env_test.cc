#include "base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kvasir::env_test {
namespace {

constexpr const char* kName = "KVASIR_ENV_TEST";

class Env : public ::testing::Test {
 protected:
  static void set(const char* value) { setenv(kName, value, 1); }
  void TearDown() override { unsetenv(kName); }
};

TEST_F(Env, TreatsUnsetAndEmptyAlike) {
  EXPECT_FALSE(env_string(kName));
  EXPECT_EQ(env_integer(kName, 0, 9).value(), std::nullopt);
  set("");
  EXPECT_FALSE(env_string(kName));
  EXPECT_EQ(env_flag(kName).value(), std::nullopt);
  EXPECT_EQ(env_bytes(kName).value(), std::nullopt);
}

TEST_F(Env, ReadsTypedValues) {
  set("7");
  EXPECT_EQ(env_string(kName), "7");
  EXPECT_EQ(env_integer(kName, 0, 9).value(), 7);
  set("off");
  EXPECT_EQ(env_flag(kName).value(), false);
  set("Yes");
  EXPECT_EQ(env_flag(kName).value(), true);
  set("2M");
  EXPECT_EQ(env_bytes(kName).value(), 2 << 20);
}

TEST_F(Env, NamesVariableLimitAndValueWhenOneDoesNotFit) {
  set("12");
  EXPECT_EQ(env_integer(kName, 0, 9).error().message,
            "KVASIR_ENV_TEST must be an integer from 0 to 9, got '12'");
  set("7x");
  EXPECT_FALSE(env_integer(kName, 0, 9));
  set("maybe");
  EXPECT_EQ(env_flag(kName).error().param, kName);
  set("much");
  EXPECT_FALSE(env_bytes(kName));
}

}  // namespace
}  // namespace kvasir::env_test
