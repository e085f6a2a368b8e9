#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "quant/dtype.h"

namespace kvasir::quant::formats_test {
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
  info_of(info.dtype).unpack_row(blocks.data(), num_elements, values.data());
  for (std::int64_t i = 0; i < num_elements; ++i) {
    float want;
    std::memcpy(&want, expected.data() + i * sizeof(float), sizeof want);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(want))
        << info.name << " element " << i << ": " << values[i] << " instead of " << want;
  }
}

std::vector<DType> formats_with_cases() {
  std::vector<DType> formats;
  for (const DTypeInfo& info : kDTypeInfos) {
    if (info.dtype != DType::kF32) formats.push_back(info.dtype);
  }
  return formats;
}

INSTANTIATE_TEST_SUITE_P(Formats, UnpackRowCases, testing::ValuesIn(formats_with_cases()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(DTypeInfos, StandInTheOrderOfTheEnum) {
  std::set<std::uint32_t> gguf_types;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DTypeInfo& info = info_of(static_cast<DType>(i));
    EXPECT_EQ(info.dtype, static_cast<DType>(i));
    EXPECT_TRUE(gguf_types.insert(info.gguf_type).second) << info.name;
  }
}

TEST(UnpackRow, CopiesFloatsFromAnUnalignedRow) {
  const float row[3] = {1.5f, -0.0f, 3e-40f};
  char bytes[sizeof row + 1];
  std::memcpy(bytes + 1, row, sizeof row);
  float values[3];
  info_of(DType::kF32).unpack_row(bytes + 1, 3, values);
  EXPECT_EQ(std::memcmp(values, row, sizeof row), 0);
}

}  // namespace
}  // namespace kvasir::quant::formats_test
