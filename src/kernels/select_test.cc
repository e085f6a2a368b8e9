#include <gtest/gtest.h>

#include <string>

#include "kernels/table.h"

namespace kvasir::kernels {
namespace {

TEST(KernelTables, AreFoundByName) {
  ASSERT_NE(find_table("ref"), nullptr);
  EXPECT_STREQ(find_table("ref")->isa, "ref");
  EXPECT_EQ(find_table("neon"), nullptr);
  EXPECT_EQ(find_table(""), nullptr);
}

TEST(KernelTables, BestIsOneOfTheNamedOnes) {
  const KernelTable& best = best_table();
  EXPECT_EQ(find_table(best.isa), &best);
  for (const char* isa : kIsas) {
    if (find_table(isa) == nullptr) continue;
    EXPECT_STREQ(best.isa, isa);
    break;
  }
}

TEST(KernelTables, HaveEveryKernel) {
  for (const char* isa : kIsas) {
    const KernelTable* table = find_table(isa);
    if (table == nullptr) continue;
    for (const FormatKernels& format : table->formats) {
      EXPECT_NE(format.packed_group_bytes, nullptr);
      EXPECT_NE(format.pack_group, nullptr);
      EXPECT_NE(format.matmul, nullptr);
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels
