// Every kernel on the host executor against the best instruction set of this host, in eight orders of threads.
#include <gtest/gtest.h>

#include "backend/cuda/cases/make_cases.h"
#include "backend/cuda/cases/run_case.h"

namespace kvasir::cuda::op_cases_test {
namespace {

constexpr std::uint32_t kOrders = 8;

void expect_bits(const std::vector<OpCase>& cases) {
  ASSERT_FALSE(cases.empty());
  for (const OpCase& op : cases) {
    for (std::uint32_t order = 0; order < kOrders; ++order) {
      SCOPED_TRACE(op.op + " " + op.name + " order " + std::to_string(order));
      simt::Device device(order);
      std::vector<std::vector<std::byte>> outputs;
      ASSERT_EQ(run_case(device, op, outputs), "");
      ASSERT_EQ(difference(op, outputs), "");
    }
  }
}

TEST(OpCases, MatvecsHaveTheBitsOfTheCpu) { expect_bits(make_matvec_cases(kernels::best_table())); }
TEST(OpCases, MatmulsHaveTheBitsOfTheCpu) { expect_bits(make_matmul_cases(kernels::best_table())); }
TEST(OpCases, ProductsOfTheFastModeHaveTheBitsOfTheCpu) {
  expect_bits(make_w8a8_matmul_cases(kernels::best_table()));
}
TEST(OpCases, QuantisedRowsHaveTheBitsOfTheCpu) { expect_bits(make_quantize_cases(kernels::best_table())); }
TEST(OpCases, QuantisedRowsOfTheFastModeHaveTheBitsOfTheCpu) {
  expect_bits(make_w8a8_quantize_cases(kernels::best_table()));
}
TEST(OpCases, NormsHaveTheBitsOfTheCpu) { expect_bits(make_norm_cases(kernels::best_table())); }
TEST(OpCases, GatesAndSumsHaveTheBitsOfTheCpu) { expect_bits(make_elementwise_cases(kernels::best_table())); }
TEST(OpCases, TileMaximaHaveTheBitsOfTheCpu) { expect_bits(make_tile_maxima_cases(kernels::best_table())); }
TEST(OpCases, EmbeddingsHaveTheBitsOfTheCpu) { expect_bits(make_embed_cases(kernels::best_table())); }
TEST(OpCases, TurnedHeadsAndStoredCellsHaveTheBitsOfTheCpu) {
  expect_bits(make_rope_cases(kernels::best_table()));
}
TEST(OpCases, AttentionHasTheBitsOfTheCpu) { expect_bits(make_attention_cases(kernels::best_table())); }
TEST(OpCases, MovedAndAddedRowsHaveTheBitsOfTheCpu) { expect_bits(make_move_cases(kernels::best_table())); }
TEST(OpCases, MergedChunksHaveTheBitsOfTheCpu) { expect_bits(make_merge_cases(kernels::best_table())); }

}  // namespace
}  // namespace kvasir::cuda::op_cases_test
