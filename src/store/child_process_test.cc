#include "store/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

namespace kvasir::store::child_process_test {
namespace {

bool keep_going() { return true; }

TEST(RunChild, ReportsExitCodeAndTheEndOfStderr) {
  const auto exit =
      run_child({"sh", "-c", "echo dropped; echo first >&2; echo last >&2; exit 7"}, {}, keep_going);
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_EQ(exit->code, 7);
  EXPECT_EQ(exit->stderr_tail, "first\nlast\n");
}

TEST(RunChild, PassesArgumentsUntouchedAndChangesTheEnvironment) {
  const auto exit = run_child({"sh", "-c", "printf '%s|%s' \"$1\" \"$KVASIR_CHILD\" >&2", "sh", "a b'$c"},
                              {"KVASIR_CHILD=yes"}, keep_going);
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_EQ(exit->stderr_tail, "a b'$c|yes");
}

TEST(RunChild, SaysWhenThereIsNoSuchProgram) {
  const auto exit = run_child({"no-such-program-anywhere"}, {}, keep_going);
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().kind, ErrorKind::kNotFound);
}

TEST(RunChild, EndsTheWholeGroupWhenAskedToStop) {
  const auto begin = std::chrono::steady_clock::now();
  const auto exit = run_child({"sh", "-c", "sleep 60 & wait"}, {}, [] { return false; });
  ASSERT_FALSE(exit);
  EXPECT_EQ(exit.error().kind, ErrorKind::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

TEST(RunChild, SurvivesOutputThatNobodyNeeds) {
  const auto exit =
      run_child({"sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x >&2; echo end >&2"}, {}, keep_going);
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_EQ(exit->code, 0);
  EXPECT_LE(exit->stderr_tail.size(), 8192u);
  EXPECT_TRUE(exit->stderr_tail.ends_with("xend\n"));
}

}  // namespace
}  // namespace kvasir::store::child_process_test
