#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "quant/format.h"

namespace kvasir::quant {
namespace {

std::vector<char> read_case(const std::string& name) {
  std::ifstream file(std::string(KVASIR_SOURCE_DIR "/tests/cases/quant/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class UnpackRowCases : public testing::TestWithParam<DType> {};

// The expected values are the gguf package's (scripts/make_quant_cases.py).
TEST_P(UnpackRowCases, EqualTheReferencePackageBitForBit) {
  const DTypeInfo& info = info_of(GetParam());
  const std::vector<char> blocks = read_case(std::string(info.name) + ".blocks");
  const std::vector<char> expected = read_case(std::string(info.name) + ".f32");
  ASSERT_FALSE(blocks.empty());
  const auto num_elements = static_cast<std::int64_t>(blocks.size()) / info.block_bytes * info.block_elements;
  ASSERT_EQ(expected.size(), num_elements * sizeof(float));

  std::vector<float> values(num_elements);
  unpack_row_of(info.dtype)(blocks.data(), num_elements, values.data());
  for (std::int64_t i = 0; i < num_elements; ++i) {
    float want;
    std::memcpy(&want, expected.data() + i * sizeof(float), sizeof want);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(want))
        << info.name << " element " << i << ": " << values[i] << " instead of " << want;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, UnpackRowCases,
                         testing::Values(DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
                                         DType::kQ5_0, DType::kQ5_1, DType::kQ4_K, DType::kQ5_K,
                                         DType::kQ6_K),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(UnpackRow, KnowsEveryDType) {
  for (const DTypeInfo& info : kDTypeInfos) EXPECT_NE(unpack_row_of(info.dtype), nullptr) << info.name;
}

TEST(UnpackRow, CopiesFloatsFromAnUnalignedRow) {
  const float row[3] = {1.5f, -0.0f, 3e-40f};
  char bytes[sizeof row + 1];
  std::memcpy(bytes + 1, row, sizeof row);
  float values[3];
  unpack_row_of(DType::kF32)(bytes + 1, 3, values);
  EXPECT_EQ(std::memcmp(values, row, sizeof row), 0);
}

}  // namespace
}  // namespace kvasir::quant
