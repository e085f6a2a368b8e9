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

}  // namespace
}  // namespace kvasir::cuda::op_cases_test
