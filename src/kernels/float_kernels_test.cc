// Norms, rotary embedding, element-wise functions, vocabulary reductions and KV writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/half.h"
#include "kernels/every_isa.h"
#include "kernels/table.h"

namespace kvasir::kernels::float_kernels_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUntouched = 12345.0f;
const std::vector<std::int64_t> kSizes = {1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 576, 640, 1023, 1537, 2048};

std::vector<float> random_floats(std::int64_t n, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::string trace(std::int64_t n) { return "n = " + std::to_string(n) + ", seeded with n"; }

class FloatKernels : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, FloatKernels, testing::ValuesIn(host_tables()), isa_name);

TEST_P(FloatKernels, RmsNormDividesByTheRootMeanSquare) {
  for (std::int64_t n : kSizes) {
    SCOPED_TRACE(trace(n));
    const std::vector<float> x = random_floats(n, 3.0f, n), weight = random_floats(n, 1.0f, n + 1);
    std::vector<float> out(n + 1, kUntouched);
    table().rms_norm(x.data(), weight.data(), 1e-5f, n, out.data());
    double squares = 0.0;
    for (float value : x) squares += double{value} * value;
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = x[i] * factor * weight[i];
      ASSERT_NEAR(out[i], expected, 4e-7 * std::abs(expected)) << "at " << i;
    }
    EXPECT_EQ(out[n], kUntouched);
    std::vector<float> in_place = x;
    table().rms_norm(in_place.data(), weight.data(), 1e-5f, n, in_place.data());
    EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), out.begin()));
  }
}

TEST_P(FloatKernels, RmsNormOfWhatNoFloatHoldsIsNan) {
  for (std::int64_t n : kSizes) {
    std::vector<float> x(n, 1e25f), weight(n, 1.0f), out(n);
    table().rms_norm(x.data(), weight.data(), 1e-5f, n, out.data());
    for (float value : out) EXPECT_TRUE(std::isnan(value));
    table().rms_norm_add(x.data(), weight.data(), 1e-5f, n, weight.data());
    for (float value : weight) EXPECT_TRUE(std::isnan(value));
  }
}

TEST_P(FloatKernels, RmsNormAddAddsWhatRmsNormWrites) {
  for (std::int64_t n : kSizes) {
    SCOPED_TRACE(trace(n));
    const std::vector<float> x = random_floats(n, 3.0f, n), weight = random_floats(n, 1.0f, n + 1);
    const std::vector<float> before = random_floats(n, 2.0f, n + 2);
    std::vector<float> norm(n), sum = before;
    sum.push_back(kUntouched);
    table().rms_norm(x.data(), weight.data(), 1e-5f, n, norm.data());
    table().rms_norm_add(x.data(), weight.data(), 1e-5f, n, sum.data());
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], before[i] + norm[i]) << "at " << i;
    EXPECT_EQ(sum[n], kUntouched);
  }
}

TEST_P(FloatKernels, LayerNormCentresAndDividesByTheDeviation) {
  for (std::int64_t n : kSizes) {
    SCOPED_TRACE(trace(n));
    std::vector<float> x = random_floats(n, 3.0f, n);
    for (float& value : x) value += 5.0f;
    const std::vector<float> weight = random_floats(n, 1.0f, n + 1), bias = random_floats(n, 1.0f, n + 2);
    std::vector<float> out(n + 1, kUntouched);
    table().layer_norm(x.data(), weight.data(), bias.data(), 1e-2f, n, out.data());
    double sum = 0.0, squares = 0.0;
    for (float value : x) sum += value;
    const double mean = sum / static_cast<double>(n);
    for (float value : x) squares += (value - mean) * (value - mean);
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-2);
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = (x[i] - mean) * factor * weight[i] + bias[i];
      ASSERT_NEAR(out[i], expected, 3e-6 * (std::abs(weight[i]) + std::abs(bias[i]))) << "at " << i;
    }
    EXPECT_EQ(out[n], kUntouched);
    std::vector<float> in_place = x;
    table().layer_norm(in_place.data(), weight.data(), bias.data(), 1e-2f, n, in_place.data());
    EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), out.begin()));
  }
}

TEST_P(FloatKernels, LayerNormOfWhatNoFloatHoldsIsNan) {
  for (std::int64_t n : kSizes) {
    if (n == 1) continue;  // one number alone is its mean
    std::vector<float> x(n, 1e25f), weight(n, 1.0f), out(n);
    x[0] = -1e25f;
    table().layer_norm(x.data(), weight.data(), weight.data(), 1e-5f, n, out.data());
    for (float value : out) EXPECT_TRUE(std::isnan(value));
  }
}

TEST_P(FloatKernels, RopeRotatesEveryPairAndKeepsItsLength) {
  for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalves}) {
    for (std::int32_t rotary_dim : {2, 8, 22, 32, 64, 80, 96, 128, 256}) {
      SCOPED_TRACE("style " + std::to_string(int(style)) + ", seed and rotary_dim " +
                   std::to_string(rotary_dim));
      const std::vector<float> angles = random_floats(rotary_dim / 2, 10.0f, rotary_dim);
      std::vector<float> cos, sin;
      for (float angle : angles) {
        cos.push_back(std::cos(angle));
        sin.push_back(std::sin(angle));
      }
      const std::vector<float> before = random_floats(rotary_dim + 6, 1.0f, rotary_dim + 1);
      std::vector<float> after = before;
      table().rope(after.data(), cos.data(), sin.data(), rotary_dim, style);
      for (std::int32_t i = 0; i < rotary_dim / 2; ++i) {
        const std::int32_t first = style == RopeStyle::kInterleaved ? 2 * i : i;
        const std::int32_t second = style == RopeStyle::kInterleaved ? 2 * i + 1 : i + rotary_dim / 2;
        const double a = before[first], b = before[second];
        ASSERT_NEAR(after[first], a * cos[i] - b * sin[i], 5e-7) << "pair " << i;
        ASSERT_NEAR(after[second], b * cos[i] + a * sin[i], 5e-7) << "pair " << i;
        ASSERT_NEAR(std::hypot(after[first], after[second]), std::hypot(a, b), 1e-6) << "pair " << i;
      }
      for (std::size_t i = rotary_dim; i < before.size(); ++i) EXPECT_EQ(after[i], before[i]);
    }
  }
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }
double gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

double gelu_erf(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

TEST_P(FloatKernels, SiluAndGeluFollowTheirFormulas) {
  std::vector<float> gate = random_floats(4099, 4.0f, 7);
  gate.insert(gate.end(), {0.0f, -0.0f, 1e-20f, -1e-20f, 60.0f, -60.0f, -87.5f, -95.0f, 1e4f, -1e4f});
  const std::int64_t n = static_cast<std::int64_t>(gate.size());
  const std::vector<float> up = random_floats(n, 1.0f, 8);
  std::vector<float> of_silu(n), of_gelu(n), of_erf(n);
  table().silu_mul(gate.data(), up.data(), n, of_silu.data());
  table().gelu_tanh_mul(gate.data(), up.data(), n, of_gelu.data());
  table().gelu_erf_mul(gate.data(), up.data(), n, of_erf.data());
  for (std::int64_t i = 0; i < n; ++i) {
    // The exponent of gelu is rounded to float32 before exp: up to 30 ulp of a tail that is next to nothing.
    const double expected_silu = silu(gate[i]) * up[i], expected_gelu = gelu_tanh(gate[i]) * up[i];
    ASSERT_NEAR(of_silu[i], expected_silu, 5e-7 * std::abs(expected_silu) + 1e-36) << "x = " << gate[i];
    ASSERT_NEAR(of_gelu[i], expected_gelu, 5e-7 * std::abs(expected_gelu) + 1e-8 * std::abs(up[i]))
        << "x = " << gate[i];
    const double expected_erf = gelu_erf(gate[i]) * up[i];
    ASSERT_NEAR(of_erf[i], expected_erf, 6e-7 * std::abs(expected_erf) + 1e-8 * std::abs(up[i]))
        << "x = " << gate[i];
  }
}

TEST_P(FloatKernels, SwigluOaiFollowsItsFormula) {
  std::vector<float> gate = random_floats(999, 6.0f, 31), up = random_floats(999, 6.0f, 32);
  for (const float value : {0.0f, 7.0f, 7.5f, -7.5f, 60.0f, -60.0f, -95.0f}) {
    gate.push_back(value);
    up.push_back(-value);
  }
  const auto n = static_cast<std::int64_t>(gate.size());
  std::vector<float> out(gate.size());
  table().swiglu_oai(gate.data(), up.data(), n, out.data());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = std::min(double{gate[i]}, 7.0), u = std::clamp(double{up[i]}, -7.0, 7.0);
    const double glu = g / (1.0 + std::exp(-1.702 * g));
    // The exponent is rounded to float32 before exp, as gelu's is.
    ASSERT_NEAR(out[i], glu * (u + 1.0), 4e-6 * std::abs(glu) * (1.0 + std::abs(u)) + 1e-36)
        << gate[i] << " " << up[i];
  }
}

TEST_P(FloatKernels, AnActivationWithoutAGateIsTheFunctionAlone) {
  const std::vector<float> x = random_floats(77, 3.0f, 21), ones(77, 1.0f);
  for (const auto function : {table().silu_mul, table().gelu_tanh_mul, table().gelu_erf_mul}) {
    std::vector<float> gated(77), alone(77);
    function(x.data(), ones.data(), 77, gated.data());
    function(x.data(), nullptr, 77, alone.data());
    EXPECT_EQ(gated, alone);
  }
}

TEST_P(FloatKernels, SoftCapIsATanhOfTheGivenHeight) {
  std::vector<float> x = random_floats(999, 30.0f, 22);
  x.insert(x.end(), {0.0f, 1e-3f, -1e-3f, 1e4f, -1e4f});
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> out(x.size());
  table().soft_cap(x.data(), 30.0f, n, out.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(out[i], 30.0 * std::tanh(double{x[i]} / 30.0), 6e-6) << "x = " << x[i];
  }
}

TEST_P(FloatKernels, ElementWiseTailsComputeWhatWholeVectorsDoAndStopAtTheEnd) {
  const std::vector<float> a = random_floats(64, 2.0f, 3), b = random_floats(64, 2.0f, 4);
  for (std::int64_t n = 0; n <= 40; ++n) {
    SCOPED_TRACE(trace(n));
    for (int op = 0; op < 8; ++op) {
      std::vector<float> whole(64), part(64, kUntouched);
      if (op == 6) whole = part = b;
      for (auto [out, count] : {std::pair{&whole, std::int64_t{64}}, {&part, n}}) {
        if (op == 0) table().silu_mul(a.data(), b.data(), count, out->data());
        if (op == 1) table().gelu_tanh_mul(a.data(), b.data(), count, out->data());
        if (op == 2) table().add(a.data(), b.data(), count, out->data());
        if (op == 3) table().scale(a.data(), 1.7f, count, out->data());
        if (op == 4) table().gelu_erf_mul(a.data(), b.data(), count, out->data());
        if (op == 5) table().soft_cap(a.data(), 1.7f, count, out->data());
        if (op == 6) table().add_scaled(a.data(), 1.7f, count, out->data());
        if (op == 7) table().swiglu_oai(a.data(), b.data(), count, out->data());
      }
      for (std::int64_t i = 0; i < 64; ++i) {
        const float rest = op == 6 ? b[i] : kUntouched;
        ASSERT_EQ(part[i], i < n ? whole[i] : rest) << "op " << op;
      }
    }
  }
  std::vector<float> sum(64), scaled(64);
  table().add(a.data(), b.data(), 64, sum.data());
  table().scale(a.data(), -0.3f, 64, scaled.data());
  for (std::int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(sum[i], a[i] + b[i]);
    EXPECT_EQ(scaled[i], a[i] * -0.3f);
  }
  table().add_scaled(a.data(), -0.3f, 64, sum.data());
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(sum[i], std::fma(a[i], -0.3f, a[i] + b[i]));
}

// sum_exp of a single logit is exp itself.
TEST_P(FloatKernels, ExpIsWithinOneAndAHalfUlp) {
  for (double x = -87.3; x < 88.3; x += 0.00037) {
    const float argument = static_cast<float>(x);
    const double expected = std::exp(double{argument});
    ASSERT_NEAR(table().sum_exp(&argument, 0.0f, 1), expected, 9e-8 * expected) << "x = " << argument;
  }
  for (float zero_at : {-kInfinity, -1e30f, -200.0f, -104.0f}) {
    EXPECT_NEAR(table().sum_exp(&zero_at, 0.0f, 1), 0.0, 1e-44) << "x = " << zero_at;
  }
  for (float one_at : {0.0f, -0.0f, -1e-30f}) EXPECT_EQ(table().sum_exp(&one_at, 0.0f, 1), 1.0);
  EXPECT_TRUE(std::isnan(table().sum_exp(&kNan, 0.0f, 1)));
}

TEST_P(FloatKernels, VocabularySumsCoverEveryLogit) {
  for (std::int64_t n : {1, 15, 16, 17, 64, 1000, 1024, 1025, 49152, 50001}) {
    SCOPED_TRACE(trace(n));
    std::vector<float> logits = random_floats(n, 5.0f, n);
    if (n > 3) logits[n / 2] = -kInfinity;  // a masked token
    const float expected_max = *std::max_element(logits.begin(), logits.end());
    std::vector<float> maxima(static_cast<std::size_t>((n + kLogitsPerTile - 1) / kLogitsPerTile));
    table().tile_maxima(logits.data(), n, maxima.data());
    for (std::size_t tile = 0; tile < maxima.size(); ++tile) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(tile * kLogitsPerTile);
      EXPECT_EQ(maxima[tile], *std::max_element(begin, begin + std::min<std::ptrdiff_t>(
                                                                   kLogitsPerTile, logits.end() - begin)));
    }
    double expected = 0.0;
    for (float logit : logits) expected += std::exp(double{logit} - expected_max);
    EXPECT_NEAR(table().sum_exp(logits.data(), expected_max, n), expected, 3e-7 * expected);
  }
}

TEST_P(FloatKernels, TileMaximaAreNanWhereALogitIs) {
  for (std::int64_t n : {1, 7, 16, 64, 200}) {
    for (std::int64_t at = 0; at < n; ++at) {
      std::vector<float> logits(static_cast<std::size_t>(n), -3.0f), maxima(4);
      logits[static_cast<std::size_t>(at)] = kNan;
      table().tile_maxima(logits.data(), n, maxima.data());
      for (std::int64_t tile = 0; tile * kLogitsPerTile < n; ++tile) {
        const float maximum = maxima[static_cast<std::size_t>(tile)];
        EXPECT_EQ(std::isnan(maximum), tile == at / kLogitsPerTile) << "at " << at << " of " << n;
        if (!std::isnan(maximum)) {
          EXPECT_EQ(maximum, -3.0f);
        }
      }
    }
  }
}

// Every value of a half and its neighbours, ties and overflows included, spread over keys and values.
TEST_P(FloatKernels, WriteKvRoundsToNearestEvenIntoItsSlotAlone) {
  const std::int32_t head_dim = 86;
  std::vector<float> interesting = random_floats(2 * head_dim - 8, 30.0f, 5);
  interesting.insert(interesting.end(),
                     {65519.0f, 65520.0f, -1e9f, 1e-8f, 0x1.004p0f, 0x1.00cp0f, kInfinity, -0.0f});
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
    const std::int64_t width = format == KvFormat::kF16 ? 2 : 4;
    for (std::int32_t slot : {0, 7, 15}) {
      std::vector<std::byte> cell(kv::cell_bytes(format, head_dim), std::byte{0xab});
      const std::byte* values = cell.data() + kv::key_bytes(format, head_dim);
      const float* k = interesting.data();
      const float* v = interesting.data() + head_dim;
      table().write_kv(
          {.k = k, .v = v, .head_dim = head_dim, .slot = slot, .format = format, .cell = cell.data()});
      const auto expect = [&](const std::byte* half, std::int64_t index, float value, bool written) {
        std::uint32_t bits = 0xabababab;
        if (written)
          bits = format == KvFormat::kF16 ? float_to_half(value) : std::bit_cast<std::uint32_t>(value);
        ASSERT_EQ(std::memcmp(half + index * width, &bits, width), 0) << value << " at " << index;
      };
      for (std::int32_t d = 0; d < head_dim; ++d) {
        for (std::int32_t s = 0; s < kTokensPerCell; ++s) {
          expect(cell.data(), d * kTokensPerCell + s, k[d], s == slot);
          expect(values, s * head_dim + d, v[d], s == slot);
        }
      }
    }
  }
}

TEST_P(FloatKernels, WriteKvTellsOfNumbersThatItsFormatDoesNotHave) {
  const std::int32_t head_dim = 70;
  struct Case {
    float number;
    bool in_half, in_float;
  };
  for (const Case& each : {Case{65519.0f, true, true}, Case{-65520.0f, false, true}, Case{1e9f, false, true},
                           Case{kInfinity, false, false}, Case{kNan, false, false}}) {
    for (const std::int32_t at : {0, 33, head_dim - 1, head_dim, 2 * head_dim - 1}) {
      SCOPED_TRACE(testing::Message() << each.number << " at " << at);
      std::vector<float> numbers(2 * head_dim, -2.0f);
      numbers[static_cast<std::size_t>(at)] = each.number;
      for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
        std::vector<std::byte> cell(kv::cell_bytes(format, head_dim));
        const bool are_finite = table().write_kv({.k = numbers.data(),
                                                  .v = numbers.data() + head_dim,
                                                  .head_dim = head_dim,
                                                  .slot = 3,
                                                  .format = format,
                                                  .cell = cell.data()});
        EXPECT_EQ(are_finite, format == KvFormat::kF16 ? each.in_half : each.in_float);
      }
    }
  }
}

TEST(FloatKernelsAcrossIsas, AgreeBitForBitWhereThereAreVectors) {
  const KernelTable* avx2 = find_table("avx2");
  const KernelTable* avx512 = find_table("avx512");
  if (avx2 == nullptr || avx512 == nullptr) GTEST_SKIP() << "this host has one vector ISA at most";
  for (std::int64_t n : kSizes) {
    SCOPED_TRACE(trace(n));
    const std::vector<float> x = random_floats(n, 4.0f, n), y = random_floats(n, 1.0f, n + 1);
    std::vector<std::vector<float>> results;
    for (const KernelTable* table : {avx2, avx512}) {
      std::vector<float> norm(n), layer(n), silu_out(n), gelu_out(n), erf_out(n), capped(n), oai(n), head = x;
      table->rms_norm(x.data(), y.data(), 1e-6f, n, norm.data());
      table->layer_norm(x.data(), y.data(), x.data(), 1e-6f, n, layer.data());
      table->silu_mul(x.data(), y.data(), n, silu_out.data());
      table->gelu_tanh_mul(x.data(), y.data(), n, gelu_out.data());
      table->gelu_erf_mul(x.data(), y.data(), n, erf_out.data());
      table->soft_cap(x.data(), 2.5f, n, capped.data());
      table->swiglu_oai(x.data(), y.data(), n, oai.data());
      const std::int32_t rotary_dim = static_cast<std::int32_t>(n / 2 * 2);
      table->rope(head.data(), y.data(), y.data() + n / 2, rotary_dim, RopeStyle::kInterleaved);
      table->rope(head.data(), y.data(), y.data() + n / 2, rotary_dim, RopeStyle::kHalves);
      std::vector<float> all = {static_cast<float>(table->sum_exp(x.data(), 1.0f, n))};
      for (const auto& part : {norm, layer, silu_out, gelu_out, erf_out, capped, oai, head})
        all.insert(all.end(), part.begin(), part.end());
      results.push_back(all);
    }
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace kvasir::kernels::float_kernels_test
