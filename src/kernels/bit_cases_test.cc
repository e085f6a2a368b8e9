// The vector kernels of every instruction set against the bits that x86's gave.
#include "kernels/bit_cases.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "kernels/every_isa.h"

namespace kvasir::kernels::bit_cases_test {
namespace {

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class VectorBits : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, VectorBits, testing::ValuesIn(vector_tables()), isa_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VectorBits);  // on a machine that has `ref` alone

TEST_P(VectorBits, AreThoseOfX86) {
  const std::vector<std::string> expected = lines_of(KVASIR_SOURCE_DIR
                                                     "/tests/cases/kernels/vector_bits.txt");
  const std::vector<BitCase> cases = bit_cases(table());
  ASSERT_EQ(cases.size(), expected.size());
  ASSERT_GT(cases.size(), 500u);
  for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(cases[i].to_string(), expected[i]);
}

}  // namespace
}  // namespace kvasir::kernels::bit_cases_test
