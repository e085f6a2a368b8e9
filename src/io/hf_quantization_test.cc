#include "io/hf_quantization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>

#include "base/half.h"
#include "quant/external/e4m3.h"

namespace kvasir::io::hf_quantization_test {
namespace {

// The parameters of one weight, whose bytes they own.
class Parameters {
 public:
  template <class T>
  Parameters& add(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
                  const std::vector<T>& values) {
    std::vector<std::byte>& bytes = bytes_.emplace_back(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    tensors_.push_back({"w." + name, dtype, std::move(shape), bytes});
    by_name_[name] = &tensors_.back();
    return *this;
  }
  const HfParameters& get() const { return by_name_; }

 private:
  std::deque<std::vector<std::byte>> bytes_;
  std::deque<SafetensorsTensor> tensors_;
  HfParameters by_name_;
};

HfQuantization quantization(std::string_view members, ComputedFloats floats = ComputedFloats::kRounded) {
  std::string text = R"({"model_type":"t","quantization_config":{)";
  const auto config = HfConfig::parse(text.append(members).append("}}"), "c");
  EXPECT_TRUE(config) << config.error().message;
  auto read = HfQuantization::read(*config, floats);
  EXPECT_TRUE(read) << read.error().message;
  return *read;
}

std::string error_of(const HfQuantization& quantization, const Parameters& parameters) {
  const auto weight = quantization.weight("w", parameters.get());
  return weight ? "" : weight.error().message;
}

struct Rows {
  DType dtype = {};
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

Rows read(const HfQuantization& quantization, const Parameters& parameters) {
  const auto weight = quantization.weight("w", parameters.get());
  EXPECT_TRUE(weight) << weight.error().message;
  if (!weight) return {};
  const RowReader& rows = *weight->rows;
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows.num_rows() * rows.row_bytes()));
  rows.read(0, rows.num_rows(), bytes.data());
  Rows out{rows.dtype(), weight->shape, std::vector<float>(static_cast<std::size_t>(rows.num_rows() * rows.row_length()))};
  info_of(rows.dtype()).unpack_row(bytes.data(), std::ssize(out.values), out.values.data());
  return out;
}

// Codes [outputs][inputs] that differ in both directions.
std::uint32_t code(std::int64_t output, std::int64_t input, std::uint32_t most) {
  return static_cast<std::uint32_t>(7 * output + 3 * input + output * input) % (most + 1);
}

constexpr std::int64_t kOutputs = 16, kInputs = 64, kGroup = 32, kGroups = 2;

std::vector<std::uint16_t> half_scales() {
  std::vector<std::uint16_t> scales;
  for (int i = 0; i < kOutputs * kGroups; ++i) scales.push_back(float_to_half(0.01f * static_cast<float>(i + 1)));
  return scales;
}

// All values by their definition: scale * (code - zero).
void expect_values(const Rows& rows, const std::function<float(std::int64_t, std::int64_t)>& value, float tolerance) {
  ASSERT_EQ(rows.shape, (std::vector<std::int64_t>{kInputs, kOutputs}));
  for (std::int64_t output = 0; output < kOutputs; ++output) {
    for (std::int64_t input = 0; input < kInputs; ++input) {
      const float expected = value(output, input);
      ASSERT_NEAR(rows.values[static_cast<std::size_t>(output * kInputs + input)], expected,
                  tolerance * std::max(1.0f, std::abs(expected)))
          << output << " " << input;
    }
  }
}

TEST(HfQuantization, NamesMethodsThatItDoesNotRead) {
  const auto config = HfConfig::parse(R"({"model_type":"t","quantization_config":{"quant_method":"bitsandbytes"}})", "c");
  EXPECT_EQ(HfQuantization::read(*config).error().message,
            "c: quantization_config asks for weights of bitsandbytes; read are fp8, compressed-tensors, gptq, awq, mxfp4");
  const auto gemv = HfConfig::parse(R"({"model_type":"t","quantization_config":{"quant_method":"awq","version":"gemv"}})", "c");
  EXPECT_EQ(HfQuantization::read(*gemv).error().message,
            "c: quantization_config has version gemv, read is gemm of AWQ");
  const auto three = HfConfig::parse(R"({"model_type":"t","quantization_config":{"quant_method":"gptq","bits":3}})", "c");
  EXPECT_EQ(HfQuantization::read(*three).error().message,
            "c: quantization_config has bits 3, read are 4 and 8 of GPTQ");
}

TEST(HfQuantization, RefusesAConfigurationThatNamesNoMethod) {
  const auto error = [](const std::string& value) {
    const auto config = HfConfig::parse(R"({"model_type":"t","quantization_config":)" + value + "}", "c");
    const auto read = HfQuantization::read(*config);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error("5"), "c: quantization_config must be an object, is 5");
  EXPECT_EQ(error("[]"), "c: quantization_config must be an object, is []");
  EXPECT_EQ(error("{}"), "c: quantization_config has no quant_method");
  EXPECT_EQ(error(R"({"quant_method":5})"), "c: quantization_config has the quant_method 5, which is no string");
  EXPECT_EQ(error(R"({"format":"pack-quantized"})"), "");
  EXPECT_EQ(error("null"), "");
}

TEST(HfQuantization, KeepsFloatsBesideQuantisedWeights) {
  Parameters parameters;
  parameters.add("weight", "F32", {1, 2}, std::vector<float>{1.5f, -2.0f});
  const Rows rows = read(quantization(R"("quant_method":"fp8")"), parameters);
  EXPECT_EQ(rows.dtype, DType::kF32);
  EXPECT_EQ(rows.values, (std::vector<float>{1.5f, -2.0f}));
}

// 2 x 2 blocks, the last ones partial.
TEST(HfQuantization, MultipliesFloat8ByTheScaleOfTheBlock) {
  std::vector<std::uint8_t> codes(3 * 64);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = i % 2 == 0 ? 0x38 : 0xb8;  // 1, -1
  Parameters parameters;
  parameters.add("weight", "F8_E4M3", {3, 64}, codes)
      .add("weight_scale_inv", "F32", {2, 2}, std::vector<float>{1, 2, 4, 8});
  const Rows rows = read(quantization(R"("quant_method":"fp8","weight_block_size":[2,48])"), parameters);
  EXPECT_EQ(rows.dtype, DType::kQ8_0);
  EXPECT_EQ(rows.shape, (std::vector<std::int64_t>{64, 3}));
  EXPECT_NEAR(rows.values[0], 1.0f, 1e-2f);
  EXPECT_NEAR(rows.values[1 * 64 + 63], -2.0f, 2e-2f);
  EXPECT_NEAR(rows.values[2 * 64 + 0], 4.0f, 4e-2f);
  EXPECT_NEAR(rows.values[2 * 64 + 63], -8.0f, 8e-2f);
}

// E4M3 has four bits; times a scale of 24 they are the nearest F32, and so is what a quantiser rounds.
TEST(HfQuantization, GivesComputedFloatsAsTheyAreWhereThatIsAskedFor) {
  std::vector<std::uint8_t> codes(2 * 64);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i % 127 + i % 2 * 128);
  Parameters parameters;
  parameters.add("weight", "F8_E4M3", {2, 64}, codes).add("weight_scale", "F32", {2, 1}, std::vector<float>{0.3f, 0.7f});
  const Rows rows = read(quantization(R"("quant_method":"fp8")", ComputedFloats::kExact), parameters);
  EXPECT_EQ(rows.dtype, DType::kF32);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(rows.values[i], quant::e4m3_to_float(codes[i]) * (i < 64 ? 0.3f : 0.7f)) << i;
  }
}

TEST(HfQuantization, TakesOneScaleOrOneOfEachRow) {
  Parameters single, rows, wrong;
  const std::vector<std::uint8_t> codes(2 * 6, 0x40);  // 2
  single.add("weight", "F8_E4M3", {2, 6}, codes).add("weight_scale", "F32", {}, std::vector<float>{3});
  rows.add("weight", "F8_E4M3", {2, 6}, codes).add("weight_scale", "BF16", {2, 1}, std::vector<std::uint16_t>{0x3f80, 0x4000});
  wrong.add("weight", "F8_E4M3", {2, 6}, codes).add("weight_scale", "F32", {3}, std::vector<float>{1, 1, 1});
  const HfQuantization fp8 = quantization(R"("quant_method":"compressed-tensors")");
  EXPECT_EQ(read(fp8, single).dtype, DType::kBF16);  // six inputs make no block
  EXPECT_EQ(read(fp8, single).values[11], 6.0f);
  EXPECT_EQ(read(fp8, rows).values[5], 2.0f);
  EXPECT_EQ(read(fp8, rows).values[6], 4.0f);
  EXPECT_EQ(error_of(fp8, wrong),
            "tensor w.weight_scale: has the shape [3], which fits neither the rows of [2, 6] nor its blocks of 128 x 128");
  Parameters bare;
  bare.add("weight", "F8_E4M3", {2, 6}, codes);
  EXPECT_EQ(error_of(fp8, bare), "tensor w.weight: has type F8_E4M3 and no scale beside it");
}

TEST(HfQuantization, TakesTheZeroFromIntegersBeforeTheScale) {
  const std::vector<std::int8_t> codes = {1, -2, 3, 4, -5, 127};
  Parameters rows, wrong;
  rows.add("weight", "I8", {2, 3}, codes).add("weight_scale", "F32", {2, 1}, std::vector<float>{2, 4});
  rows.add("weight_zero_point", "I8", {2, 1}, std::vector<std::int8_t>{-3, 7});
  const HfQuantization method = quantization(R"("quant_method":"compressed-tensors")", ComputedFloats::kExact);
  EXPECT_EQ(read(method, rows).values, (std::vector<float>{8, 2, 12, -12, -48, 480}));
  wrong.add("weight", "F8_E4M3", {2, 3}, codes).add("weight_scale", "F32", {2, 1}, std::vector<float>{2, 4});
  wrong.add("weight_zero_point", "I8", {2, 1}, std::vector<std::int8_t>{-3, 7});
  EXPECT_EQ(error_of(method, wrong), "tensor w.weight_zero_point: is I8 [2, 1], read is I8 [2, 1] beside a weight of I8");
}

TEST(HfQuantization, KeepsTheCodesOfCompressedTensors) {
  std::vector<std::uint32_t> words(kOutputs * kInputs / 8);
  for (std::int64_t o = 0; o < kOutputs; ++o) {
    for (std::int64_t i = 0; i < kInputs; ++i) {
      words[static_cast<std::size_t>((o * kInputs + i) / 8)] |= code(o, i, 15) << (4 * (i % 8));
    }
  }
  Parameters parameters;
  parameters.add("weight_packed", "I32", {kOutputs, kInputs / 8}, words)
      .add("weight_scale", "F16", {kOutputs, kGroups}, half_scales())
      .add("weight_shape", "I64", {2}, std::vector<std::int64_t>{kOutputs, kInputs});
  const auto scale = [](std::int64_t o, std::int64_t i) {
    return half_to_float(half_scales()[static_cast<std::size_t>(o * kGroups + i / kGroup)]);
  };
  const HfQuantization method = quantization(R"("quant_method":"compressed-tensors")");
  const Rows symmetric = read(method, parameters);
  EXPECT_EQ(symmetric.dtype, DType::kQ4_0);
  expect_values(symmetric, [&](auto o, auto i) { return scale(o, i) * (static_cast<float>(code(o, i, 15)) - 8.0f); }, 0.0f);

  std::vector<std::uint32_t> zeros(kOutputs / 8 * kGroups);
  const auto zero = [](std::int64_t o, std::int64_t g) { return static_cast<std::uint32_t>(o + 5 * g) % 16; };
  for (std::int64_t o = 0; o < kOutputs; ++o) {
    for (std::int64_t g = 0; g < kGroups; ++g) zeros[static_cast<std::size_t>(o / 8 * kGroups + g)] |= zero(o, g) << (4 * (o % 8));
  }
  parameters.add("weight_zero_point", "I32", {kOutputs / 8, kGroups}, zeros);
  const Rows affine = read(method, parameters);
  EXPECT_EQ(affine.dtype, DType::kQ4_1);
  const auto value = [&](std::int64_t o, std::int64_t i) {
    return scale(o, i) * (static_cast<float>(code(o, i, 15)) - static_cast<float>(zero(o, i / kGroup)));
  };
  expect_values(affine, value, 2e-3f);  // the minimum is rounded to half precision
}

struct Gptq {
  Parameters parameters;
  explicit Gptq(std::uint32_t zero_word, std::uint32_t most = 15, std::int64_t per_word = 8) {
    std::vector<std::uint32_t> words(static_cast<std::size_t>(kInputs / per_word * kOutputs));
    for (std::int64_t o = 0; o < kOutputs; ++o) {
      for (std::int64_t i = 0; i < kInputs; ++i) {
        words[static_cast<std::size_t>(i / per_word * kOutputs + o)] |= code(o, i, most) << (32 / per_word * (i % per_word));
      }
    }
    parameters.add("qweight", "I32", {kInputs / per_word, kOutputs}, words)
        .add("qzeros", "I32", {kGroups, kOutputs / per_word},
             std::vector<std::uint32_t>(static_cast<std::size_t>(kGroups * kOutputs / per_word), zero_word))
        .add("scales", "F16", {kGroups, kOutputs}, half_scales());
  }
  static float scale(std::int64_t o, std::int64_t group) {
    return half_to_float(half_scales()[static_cast<std::size_t>(group * kOutputs + o)]);
  }
};

TEST(HfQuantization, KnowsBothWaysInWhichGptqStoresItsZeros) {
  const auto with_zero = [](float zero) {
    return [zero](std::int64_t o, std::int64_t i) {
      return Gptq::scale(o, i / kGroup) * (static_cast<float>(code(o, i, 15)) - zero);
    };
  };
  const HfQuantization first = quantization(R"("quant_method":"gptq","bits":4)");
  const HfQuantization second = quantization(R"("quant_method":"gptq","bits":4,"checkpoint_format":"gptq_v2")");
  for (const auto& [method, word] : {std::pair(&first, 0x77777777u), std::pair(&second, 0x88888888u),
                                     std::pair(&first, 0x88888888u)}) {  // the last one is mislabelled
    const Rows rows = read(*method, Gptq(word).parameters);
    EXPECT_EQ(rows.dtype, DType::kQ4_0);
    expect_values(rows, with_zero(8.0f), 0.0f);
  }
  const Rows affine = read(first, Gptq(0x55555555u).parameters);
  EXPECT_EQ(affine.dtype, DType::kQ4_1);
  expect_values(affine, with_zero(6.0f), 2e-3f);
  expect_values(read(second, Gptq(0x55555555u).parameters), with_zero(5.0f), 2e-3f);
  expect_values(read(first, Gptq(0xffffffffu).parameters), with_zero(16.0f), 2e-3f);
}

TEST(HfQuantization, KeepsGptqOfEightBits) {
  const Rows rows = read(quantization(R"("quant_method":"gptq","bits":8)"), Gptq(0x7f7f7f7fu, 255, 4).parameters);
  EXPECT_EQ(rows.dtype, DType::kQ8_0);
  expect_values(
      rows,
      [](auto o, auto i) { return Gptq::scale(o, i / kGroup) * (static_cast<float>(code(o, i, 255)) - 128.0f); }, 0.0f);
}

TEST(HfQuantization, QuantisesAnewWhereGptqsGroupsAreNoRuns) {
  Gptq file(0x77777777u);
  std::vector<std::int32_t> groups;
  for (int i = 0; i < kInputs; ++i) groups.push_back(i % 2);
  file.parameters.add("g_idx", "I32", {kInputs}, groups);
  const HfQuantization method = quantization(R"("quant_method":"gptq","bits":4)");
  const Rows rows = read(method, file.parameters);
  EXPECT_EQ(rows.dtype, DType::kQ8_0);
  expect_values(rows, [](auto o, auto i) { return Gptq::scale(o, i % 2) * (static_cast<float>(code(o, i, 15)) - 8.0f); },
                2e-2f);
  std::vector<std::int32_t> wrong(kInputs, 2);
  file.parameters.add("g_idx", "I32", {kInputs}, wrong);
  EXPECT_EQ(error_of(method, file.parameters), "tensor w.g_idx: holds group 2, there are 2");
  std::vector<std::int32_t> runs;
  for (int i = 0; i < kInputs; ++i) runs.push_back(i / static_cast<int>(kGroup));
  file.parameters.add("g_idx", "I32", {kInputs}, runs);
  EXPECT_EQ(read(method, file.parameters).dtype, DType::kQ4_0);
}

TEST(HfQuantization, ReadsAwqInItsOrderOfOutputs) {
  constexpr int kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  std::vector<std::uint32_t> words(kInputs * kOutputs / 8), zeros(kGroups * kOutputs / 8);
  const auto zero = [](std::int64_t o, std::int64_t g) { return static_cast<std::uint32_t>(o + 3 * g) % 16; };
  for (std::int64_t word = 0; word < kOutputs / 8; ++word) {
    for (int place = 0; place < 8; ++place) {
      const std::int64_t o = 8 * word + kOrder[place];
      for (std::int64_t i = 0; i < kInputs; ++i) {
        words[static_cast<std::size_t>(i * kOutputs / 8 + word)] |= code(o, i, 15) << (4 * place);
      }
      for (std::int64_t g = 0; g < kGroups; ++g) {
        zeros[static_cast<std::size_t>(g * kOutputs / 8 + word)] |= zero(o, g) << (4 * place);
      }
    }
  }
  Parameters parameters;
  parameters.add("qweight", "I32", {kInputs, kOutputs / 8}, words)
      .add("qzeros", "I32", {kGroups, kOutputs / 8}, zeros)
      .add("scales", "F16", {kGroups, kOutputs}, half_scales());
  const Rows rows = read(quantization(R"("quant_method":"awq","bits":4,"version":"gemm")"), parameters);
  EXPECT_EQ(rows.dtype, DType::kQ4_1);
  const auto value = [&](std::int64_t o, std::int64_t i) {
    return Gptq::scale(o, i / kGroup) * (static_cast<float>(code(o, i, 15)) - static_cast<float>(zero(o, i / kGroup)));
  };
  expect_values(rows, value, 2e-3f);
}

TEST(HfQuantization, RegroupsTheNibblesOfMxfp4) {
  constexpr float kNumbers[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::vector<std::uint8_t> blocks(2 * 2 * 1 * 16), scales = {127, 128, 126, 130};
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::uint8_t>((2 * i + 1) % 16 << 4 | 2 * i % 16);
  Parameters parameters;
  parameters.add("blocks", "U8", {2, 2, 1, 16}, blocks).add("scales", "U8", {2, 2, 1}, scales);
  const Rows rows = read(quantization(R"("quant_method":"mxfp4")"), parameters);
  EXPECT_EQ(rows.dtype, DType::kMXFP4);
  EXPECT_EQ(rows.shape, (std::vector<std::int64_t>{32, 2, 2}));
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    const float magnitude = kNumbers[i % 8] * std::exp2f(static_cast<float>(scales[i / 32]) - 127.0f);
    EXPECT_EQ(rows.values[i], i % 16 < 8 ? magnitude : -magnitude) << i;
  }
}

TEST(HfQuantization, DividesNvfp4ByItsGlobalScale) {
  std::vector<std::uint8_t> nibbles(16, 0x72);  // 1 and 6
  Parameters parameters;
  parameters.add("weight_packed", "U8", {1, 16}, nibbles)
      .add("weight_scale", "F8_E4M3", {1, 2}, std::vector<std::uint8_t>{0x38, 0x40})  // 1, 2
      .add("weight_global_scale", "F32", {1}, std::vector<float>{4.0f});
  const Rows rows = read(quantization(R"("quant_method":"compressed-tensors")"), parameters);
  EXPECT_NEAR(rows.values[0], 0.25f, 2e-2f);
  EXPECT_NEAR(rows.values[1], 1.5f, 2e-2f);
  EXPECT_NEAR(rows.values[31], 3.0f, 2e-2f);
}

TEST(HfQuantization, NamesWhatIsMissingOrMisshapen) {
  const HfQuantization method = quantization(R"("quant_method":"gptq","bits":4)");
  Parameters lonely;
  lonely.add("qweight", "I32", {1, 8}, std::vector<std::uint32_t>(8));
  EXPECT_EQ(error_of(method, lonely), "tensor w.qweight: has no qzeros beside it");
  lonely.add("qzeros", "I32", {1, 2}, std::vector<std::uint32_t>(2));
  EXPECT_EQ(error_of(method, lonely), "tensor w.qzeros: must have the shape [1, 1], has [1, 2]");
  lonely.add("qzeros", "F32", {1, 1}, std::vector<float>(1));
  EXPECT_EQ(error_of(method, lonely), "tensor w.qzeros: must be I32 of 2 axes, is F32 [1, 1]");
}

}  // namespace
}  // namespace kvasir::io::hf_quantization_test
