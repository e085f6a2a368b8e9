#include "quant/encode/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace kvasir::quant::encode_test {
namespace {

std::vector<char> read_case(const std::string& name) {
  std::ifstream file(std::string(KVASIR_SOURCE_DIR "/tests/cases/encode/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<float> as_floats(const std::vector<char>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> through(DType dtype, const std::vector<float>& values) {
  const auto count = std::ssize(values);
  std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(dtype, count)));
  encoder_of(dtype)(values.data(), count, row.data());
  std::vector<float> back(values.size());
  info_of(dtype).unpack_row(row.data(), count, back.data());
  return back;
}

double squared_error(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return sum;
}

std::vector<float> random_weights(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = 0.02f * normal(random);
  return values;
}

class EncodedCases : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Formats, EncodedCases,
                         testing::Values(DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kMXFP4),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// The expected blocks are the gguf package's (scripts/make_encode_cases.py).
TEST_P(EncodedCases, EqualTheReferencePackageBitForBit) {
  const std::vector<float> values = as_floats(read_case("values.f32"));
  const std::vector<char> expected = read_case(std::string(name_of(GetParam())) + ".blocks");
  ASSERT_FALSE(values.empty());
  std::vector<std::byte> blocks(static_cast<std::size_t>(row_bytes(GetParam(), std::ssize(values))));
  ASSERT_EQ(blocks.size(), expected.size());
  encoder_of(GetParam())(values.data(), std::ssize(values), blocks.data());
  const auto block_bytes = static_cast<std::size_t>(info_of(GetParam()).block_bytes);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(static_cast<int>(blocks[i]), static_cast<int>(static_cast<unsigned char>(expected[i])))
        << "block " << i / block_bytes << " byte " << i % block_bytes;
  }
}

TEST(EncodeQ4K, ErrsLessThanFourBitsWithoutAMinimum) {
  const std::vector<float> values = random_weights(256 * 64, 3);
  const double of_q4_k = squared_error(values, through(DType::kQ4_K, values));
  const double of_q4_0 = squared_error(values, through(DType::kQ4_0, values));
  EXPECT_LT(of_q4_k, 0.85 * of_q4_0);
}

TEST(EncodeQ4K, KeepsNumbersOfOneSignAndZeros) {
  std::vector<float> values = random_weights(256, 4);
  for (float& value : values) value = std::abs(value) + 0.1f;
  const std::vector<float> back = through(DType::kQ4_K, values);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(back[i], values[i], 0.012f) << i;
  EXPECT_EQ(through(DType::kQ4_K, std::vector<float>(256)), std::vector<float>(256));
}

TEST(Encode, GivesScalesThatAreNoNumbersForValuesThatAreNone) {
  for (const DType dtype : {DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kMXFP4}) {
    for (const float odd : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> values(256, 1.0f);
      values[77] = odd;
      std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(dtype, 256)));
      encoder_of(dtype)(values.data(), 256, row.data());
      EXPECT_FALSE(info_of(dtype).is_finite_row(row.data(), 256)) << name_of(dtype) << " " << odd;
    }
  }
}

TEST(Encode, KnowsNoEncoderOfTypesThatAreOnlyRead) { EXPECT_EQ(encoder_of(DType::kIQ2_S), nullptr); }

}  // namespace
}  // namespace kvasir::quant::encode_test
