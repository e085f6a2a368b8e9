#include <gtest/gtest.h>

#include <string>

#include "kernels/isa.h"

namespace kvasir::kernels::select_test {
namespace {

TEST(KernelTables, AreFoundByName) {
  ASSERT_NE(find_table("ref"), nullptr);
  EXPECT_STREQ(find_table("ref")->isa, "ref");
  EXPECT_EQ(find_table("sse9"), nullptr);
  EXPECT_EQ(find_table(""), nullptr);
}

TEST(KernelTables, BestIsOneOfTheNamedOnes) {
  const KernelTable& best = best_table();
  EXPECT_EQ(find_table(best.isa), &best);
  EXPECT_EQ(&best, &host_isas().front().table);
  EXPECT_STREQ(host_isas().back().table.isa, "ref");
}

TEST(KernelTables, HaveEveryKernel) {
  for (const Isa& isa : host_isas()) {
    for (const FormatKernels& format : isa.table.formats) {
      EXPECT_NE(format.packed_group_bytes, nullptr);
      EXPECT_NE(format.pack_group, nullptr);
      EXPECT_NE(format.matmul, nullptr);
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::select_test
