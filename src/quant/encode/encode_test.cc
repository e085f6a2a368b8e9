#include "quant/encode/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"

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
                         testing::Values(DType::kBF16, DType::kQ4_0, DType::kMXFP4),
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

std::vector<float> unpacked(DType dtype, const std::byte* blocks, std::size_t count) {
  std::vector<float> values(count);
  info_of(dtype).unpack_row(blocks, std::ssize(values), values.data());
  return values;
}

// The squared error of 32 numbers when the largest is at 127.
double error_of_plain_scale(const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
  const double scale = half_to_float(float_to_half(largest / 127.0f));
  double sum = 0.0;
  for (int i = 0; i < 32; ++i) sum += std::pow(std::round(x[i] * 127.0 / largest) * scale - x[i], 2);
  return sum;
}

TEST(EncodeQ8_0, ErrsInNoBlockMoreThanTheReferencePackage) {
  const std::vector<float> values = as_floats(read_case("values.f32"));
  const std::vector<char> reference = read_case("Q8_0.blocks");
  const std::vector<float> of_reference =
      unpacked(DType::kQ8_0, reinterpret_cast<const std::byte*>(reference.data()), values.size());
  const std::vector<float> own = through(DType::kQ8_0, values);
  for (std::size_t i = 0; i < values.size(); i += 32) {
    const auto part = [i](const std::vector<float>& all) {
      return std::vector(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(i + 32));
    };
    const double most = squared_error(part(values), part(of_reference));
    EXPECT_LE(squared_error(part(values), part(own)), most * (1 + 1e-5)) << i / 32;
  }
}

// Sixteen levels of each 32, as a file in Q4_1 that was widened has them.
TEST(EncodeQ8_0, FindsScalesOfWeightsThatHaveLevels) {
  std::vector<float> normal = random_weights(32 * 2000, 5), levels = normal;
  double plain_normal = 0.0, plain_levels = 0.0;
  for (std::size_t i = 0; i < levels.size(); i += 32) {
    const auto [least, most] = std::minmax_element(&normal[i], &normal[i] + 32);
    const float minimum = half_to_float(float_to_half(*least)), step = half_to_float(float_to_half((*most - *least) / 15));
    for (std::size_t j = i; j < i + 32; ++j) levels[j] = minimum + std::round((normal[j] - minimum) / step) * step;
    plain_normal += error_of_plain_scale(&normal[i]);
    plain_levels += error_of_plain_scale(&levels[i]);
  }
  EXPECT_LT(squared_error(levels, through(DType::kQ8_0, levels)), 0.3 * plain_levels);
  EXPECT_LT(squared_error(normal, through(DType::kQ8_0, normal)), 0.82 * plain_normal);
}

TEST(EncodeQ8_0, KeepsNumbersThatItHasExactly) {
  std::vector<float> values(32 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int code = i % 32 == 0 ? 127 : static_cast<int>(i * 37 % 255) - 127;
    values[i] = std::ldexp(static_cast<float>(code), static_cast<int>(i / 32) % 20 - 12);
  }
  EXPECT_EQ(through(DType::kQ8_0, values), values);
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
