#include "kernels/bit_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "base/check.h"
#include "kernels/attention_problem.h"
#include "kernels/matmul_problem.h"
#include "kernels/nibble_planes.h"
#include "kernels/portable_normal.h"
#include "kernels/random_key_basis.h"

namespace kvasir::kernels {
namespace {

using Floats = std::vector<float>;

// FNV-1a (Fowler, Noll and Vo) over the bytes of results.
class Hash {
 public:
  void add_bytes(std::span<const std::byte> bytes) {
    for (const std::byte each : bytes) value_ = (value_ ^ static_cast<std::uint64_t>(each)) * 0x100000001b3u;
  }
  void add(std::span<const float> values) {
    for (const float each : values) {
      const float one_nan = std::isnan(each) ? std::numeric_limits<float>::quiet_NaN() : each;
      add_bytes(std::as_bytes(std::span(&one_nan, 1)));
    }
  }
  void add(double value) { add_bytes(std::as_bytes(std::span(&value, 1))); }
  void add(bool value) { add_bytes(std::as_bytes(std::span(&value, 1))); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

// Every 97th is 30 times as large.
Floats random_floats(std::int64_t count, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  const PortableNormal normal;
  Floats values(size_of(count));
  for (float& each : values) each = deviation * normal(random);
  for (std::size_t i = 13; i < values.size(); i += 97) values[i] *= 30.0f;
  return values;
}

// With numbers that functions treat apart.
Floats unusual_floats(std::int64_t count, std::uint32_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float unusual[] = {0.0f,
                           -0.0f,
                           1e-40f,
                           -1e-40f,
                           88.0f,
                           -88.0f,
                           1000.0f,
                           -1000.0f,
                           kInfinity,
                           -kInfinity,
                           std::numeric_limits<float>::quiet_NaN()};
  Floats values = random_floats(count, 4.0f, seed);
  std::copy(std::begin(unusual), std::end(unusual), values.begin());
  return values;
}

RandomWeights portable_weights(DType dtype, std::int64_t num_rows, std::int64_t k, std::uint32_t seed) {
  std::mt19937 random(seed);
  const PortableNormal normal;
  RandomWeights weights{dtype, num_rows, k, {}};
  weights.bytes.resize(size_of(num_rows * weights.row_bytes()));
  const DTypeInfo& info = info_of(dtype);
  for (std::size_t at = 0; at < weights.bytes.size(); at += size_of(info.block_bytes)) {
    char* block = weights.bytes.data() + at;
    for (std::int64_t i = 0; i < info.block_bytes; ++i) block[i] = static_cast<char>(random());
    for (const quant::FloatField& field : info.floats) put_float(0.02f * normal(random), field, block);
  }
  return weights;
}

constexpr std::int32_t kBasisBlock = 5;

class BitCases {
 public:
  explicit BitCases(const KernelTable& table) : table_(table) {}

  std::vector<BitCase> make() {
    for (const DTypeInfo& info : kDTypeInfos) add_matmuls(info);
    add_nibble_planes();
    add_quantised_rows();
    add_norms();
    add_elementwise();
    add_rope();
    add_vocabulary();
    add_cells();
    add_attention();
    add_merge();
    return std::move(cases_);
  }

 private:
  void add_case(std::string name, const Hash& hash) { cases_.push_back({std::move(name), hash.value()}); }

  void add_matmuls(const DTypeInfo& info) {
    const std::int64_t unit = std::max<std::int64_t>(info.block_elements, 32);
    const std::int64_t k = unit == 32 ? 31 * unit : 3 * unit;
    std::uint32_t seed = 100 * static_cast<std::uint32_t>(info.dtype);
    for (const bool is_fast : {false, true}) {
      for (const std::int32_t tokens : {1, 2, 3, 5, 7, 9, 15, 70}) {
        const MatmulShape shape = {.dtype = info.dtype,
                                   .k = k,
                                   .num_rows = tokens == 70 ? 83 : 21,
                                   .num_tokens = tokens,
                                   .seed = ++seed,
                                   .w8a8 = is_fast};
        MatmulProblem problem(shape, portable_weights(info.dtype, shape.num_rows, k, seed),
                              random_floats(tokens * k, 1.0f, seed + 1));
        Floats out = random_floats(tokens * shape.num_rows, 1.0f, seed + 2);
        MatmulArgs args = problem.args(table_, out.data());
        args.accumulate = tokens % 2 == 0;
        format_of(table_, shape).matmul(args);
        Hash hash;
        hash.add(out);
        add_case("matmul " + describe(shape), hash);
      }
    }
  }

  void add_nibble_planes() {
    const NibblePlaneKernels& planes = table_.nibble_planes;
    const MatmulShape shape = {.dtype = DType::kQ8_0, .k = 736, .num_rows = 91, .num_tokens = 18, .seed = 5};
    MatmulProblem problem(shape, portable_weights(shape.dtype, shape.num_rows, shape.k, 5),
                          random_floats(shape.num_tokens * shape.k, 1.0f, 6));
    const std::int64_t groups = problem.num_groups();
    std::vector<PackedHighPlane> high(size_of(groups * planes.high_group_bytes(shape.k)) /
                                      sizeof(PackedHighPlane));
    std::vector<PackedLowPlane> low(size_of(groups * planes.low_group_bytes(shape.k)) /
                                    sizeof(PackedLowPlane));
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int64_t row = g * kRowsPerGroup;
      planes.pack_group(problem.weights().row(row), problem.weights().row_bytes(),
                        static_cast<int>(std::min<std::int64_t>(kRowsPerGroup, shape.num_rows - row)),
                        shape.k,
                        reinterpret_cast<std::byte*>(high.data()) + g * planes.high_group_bytes(shape.k),
                        reinterpret_cast<std::byte*>(low.data()) + g * planes.low_group_bytes(shape.k));
    }
    Floats out(size_of(shape.num_tokens * shape.num_rows));
    MatmulArgs args = problem.args(table_, out.data());
    args.weights = high.data();
    args.low_weights = low.data();
    planes.matmul(args);
    Hash hash;
    hash.add(out);
    add_case("nibble planes matmul", hash);
    for (const std::int32_t token : {0, 7, 17}) add_bounds(args, token);
  }

  // The argmax's bounds from the planes of `of`.
  void add_bounds(const MatmulArgs& of, std::int32_t token) {
    const NibblePlaneKernels& planes = table_.nibble_planes;
    const std::int64_t groups = of.group_end;
    std::vector<BoundInputs> inputs(size_of(planes.input_bytes(of.k)) / sizeof(BoundInputs) + 1);
    planes.measure_inputs(of.quantized, of.k, token, of.num_tokens, inputs.data());
    Floats estimate(size_of(groups * kRowsPerGroup)), slack(estimate.size());
    Floats upper(size_of(groups)), lower(size_of(groups));
    const BoundArgs args = {.weights = of.weights,
                            .low_weights = of.low_weights,
                            .k = of.k,
                            .num_rows = of.num_rows,
                            .group_begin = 0,
                            .group_end = groups,
                            .quantized = of.quantized,
                            .token = token,
                            .num_tokens = of.num_tokens,
                            .inputs = inputs.data(),
                            .estimate = estimate.data(),
                            .slack = slack.data(),
                            .upper = upper.data(),
                            .lower = lower.data()};
    for (const bool is_refined : {false, true}) {
      is_refined ? planes.refine(args) : planes.bound(args);
      Hash hash;
      for (const Floats* each : {&estimate, &slack, &upper, &lower}) hash.add(*each);
      add_case(fmt::format("nibble planes {} token {}", is_refined ? "refine" : "bound", token), hash);
    }
  }

  void add_quantised_rows() {
    for (const std::int64_t k : {32, 256, 992, 2048}) {
      for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
        for (const bool is_fast : {false, true}) add_quantised_rows(k, seed, is_fast);
      }
    }
  }
  void add_quantised_rows(std::int64_t k, std::uint32_t seed, bool is_fast) {
    constexpr std::int32_t kTokens = 19;
    Floats x = random_floats(kTokens * k, std::ldexp(1.0f, static_cast<int>(5 * seed) - 12), seed);
    if (seed == 2) std::copy_n(unusual_floats(k, seed).begin(), k, x.begin());
    if (seed == 3) std::fill_n(x.begin(), k, 1e-38f);
    std::vector<std::byte> quantized(size_of(table_.activation_bytes(k, kTokens)), std::byte{0xcd});
    Hash hash;
    for (std::int32_t t = 0; t < kTokens; ++t) {
      const auto quantize = is_fast ? table_.quantize_row_w8a8 : table_.quantize_row;
      hash.add(quantize(x.data() + t * k, k, t, kTokens, quantized.data()));
    }
    hash.add_bytes(quantized);
    add_case(fmt::format("quantise k {} seed {}{}", k, seed, is_fast ? " w8a8" : ""), hash);
  }

  void add_norms() {
    for (const std::int64_t n : {1, 15, 64, 100, 576, 2048}) {
      Floats x = random_floats(n, 3.0f, 7);
      const Floats weight = random_floats(n, 1.0f, 8), bias = random_floats(n, 1.0f, 9);
      for (const bool overflows : {false, true}) {
        if (overflows) x[0] = 1e30f;
        Floats normed(x.size()), added = bias, layered(x.size());
        table_.rms_norm(x.data(), weight.data(), 1e-5f, n, normed.data());
        table_.rms_norm_add(x.data(), weight.data(), 1e-5f, n, added.data());
        table_.layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, layered.data());
        Hash hash;
        for (const Floats* each : {&normed, &added, &layered}) hash.add(*each);
        add_case(fmt::format("norms n {}{}", n, overflows ? " too large" : ""), hash);
      }
    }
  }

  void add_elementwise() {
    using Gate = void (*)(const float*, const float*, std::int64_t, float*);
    const std::pair<const char*, Gate> gates[] = {{"silu_mul", table_.silu_mul},
                                                  {"gelu_tanh_mul", table_.gelu_tanh_mul},
                                                  {"gelu_erf_mul", table_.gelu_erf_mul},
                                                  {"swiglu_oai", table_.swiglu_oai},
                                                  {"add", table_.add}};
    constexpr std::int64_t kCount = 1003;
    const Floats x = unusual_floats(kCount, 11), up = random_floats(kCount, 4.0f, 12);
    for (const auto& [name, gate] : gates) {
      Floats out(x.size());
      gate(x.data(), up.data(), kCount, out.data());
      Hash hash;
      hash.add(out);
      add_case(name, hash);
    }
    Floats scaled(x.size()), sum = up, capped(x.size());
    table_.scale(x.data(), 0.37f, kCount, scaled.data());
    table_.add_scaled(x.data(), 0.37f, kCount, sum.data());
    table_.soft_cap(x.data(), 30.0f, kCount, capped.data());
    Hash hash;
    for (const Floats* each : {&scaled, &sum, &capped}) hash.add(*each);
    add_case("scale, add_scaled and soft_cap", hash);
  }

  void add_rope() {
    for (const std::int32_t rotary_dim : {2, 24, 64, 128}) {
      Floats cos(size_of(rotary_dim / 2) + 16), sin(cos.size());
      for (std::size_t i = 0; i < cos.size(); ++i) {
        cos[i] = static_cast<float>(i % 7) / 7.0f;
        sin[i] = static_cast<float>(i % 5) / -5.0f;
      }
      for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalves}) {
        Floats head = random_floats(136, 2.0f, 13);
        table_.rope(head.data(), cos.data(), sin.data(), rotary_dim, style);
        Hash hash;
        hash.add(head);
        add_case(fmt::format("rope of {} {}", rotary_dim, style == RopeStyle::kHalves ? "halves" : "pairs"),
                 hash);
      }
    }
  }

  void add_vocabulary() {
    for (const std::int64_t n : {1, 63, 64, 1000, 5000}) {
      Floats x = random_floats(n, 3.0f, 14);
      Floats maxima(size_of((n + kLogitsPerTile - 1) / kLogitsPerTile));
      Hash hash;
      for (const bool has_nan : {false, true}) {
        if (has_nan) x[size_of(n / 2)] = std::numeric_limits<float>::quiet_NaN();
        if (!has_nan) hash.add(table_.sum_exp(x.data(), 20.0f, n));
        table_.tile_maxima(x.data(), n, maxima.data());
        hash.add(maxima);
      }
      add_case(fmt::format("tile_maxima and sum_exp n {}", n), hash);
    }
  }

  // A cell of 16 random tokens, and whether each was written as it is.
  std::vector<std::byte> written_cell(KvFormat format, std::int32_t head_dim, float largest, Hash& hash) {
    std::vector<std::byte> cell(kv::cell_bytes(format, head_dim));
    for (int slot = 0; slot < kTokensPerCell; ++slot) {
      Floats k = random_floats(head_dim, 1.0f, static_cast<std::uint32_t>(2 * slot));
      const Floats v = random_floats(head_dim, 0.1f, static_cast<std::uint32_t>(2 * slot + 1));
      k[3] = slot == 5 ? largest : 12.0f;
      hash.add(table_.write_kv({.k = k.data(),
                                .v = v.data(),
                                .head_dim = head_dim,
                                .slot = slot,
                                .format = format,
                                .cell = cell.data()}));
    }
    return cell;
  }

  void add_cells() {
    for (const std::int32_t head_dim : {40, 64, 96, 256}) {
      for (const KvFormat format : {KvFormat::kF32, KvFormat::kF16, KvFormat::kQ12}) {
        if (!kv::supports(format, head_dim)) continue;
        for (const float largest : {-12.0f, 65519.0f, std::numeric_limits<float>::infinity()}) {
          Hash hash;
          hash.add_bytes(written_cell(format, head_dim, largest, hash));
          add_case(fmt::format("write_kv {} of {} up to {}", kv::name_of(format), head_dim, largest), hash);
        }
        Hash unused;
        const std::vector<std::byte> cell = written_cell(format, head_dim, 12.0f, unused);
        add_measures(format, head_dim, cell);
        add_conversions(format, head_dim, cell);
      }
    }
  }

  void add_conversions(KvFormat from, std::int32_t head_dim, const std::vector<std::byte>& cell) {
    for (int i = static_cast<int>(KvFormat::kQ8); i < kv::kNumKvFormats; ++i) {
      const auto to = static_cast<KvFormat>(i);
      if (!kv::supports(to, head_dim)) continue;
      const RandomKeyBasis basis(head_dim, kBasisBlock + 1, 12.0f, static_cast<std::uint32_t>(head_dim));
      std::vector<std::byte> coarse(kv::cell_bytes(to, head_dim));
      table_.convert_cell({.head_dim = head_dim,
                           .from = from,
                           .to = to,
                           .source = cell.data(),
                           .target = coarse.data(),
                           .basis = &basis.basis(),
                           .block = kBasisBlock});
      Hash hash;
      hash.add_bytes(coarse);
      add_case(fmt::format("convert_cell {} to {} of {}", kv::name_of(from), kv::name_of(to), head_dim),
               hash);
      if (from == KvFormat::kF16) add_measures(to, head_dim, coarse, &basis.basis());
    }
  }

  void add_measures(KvFormat format, std::int32_t head_dim, const std::vector<std::byte>& cell, const kv::KeyBasis* basis = nullptr) {
    Floats key_sum = random_floats(head_dim, 3.0f, 15), measures(3);
    table_.measure_cell({.head_dim = head_dim,
                         .format = format,
                         .cell = cell.data(),
                         .basis = basis,
                         .block = kBasisBlock,
                         .key_sum = key_sum.data(),
                         .distinctness = &measures[0],
                         .value_key_ratio = &measures[1],
                         .longest_value = &measures[2]});
    Hash hash;
    hash.add(key_sum);
    hash.add(measures);
    add_case(fmt::format("measure_cell {} of {}", kv::name_of(format), head_dim), hash);
  }

  void add_attention() {
    struct Width {
      std::int32_t head_dim;
      std::uint32_t seed;  // of its first case: bits that are written down stay
    };
    for (auto [head_dim, seed] : {Width{40, 1}, Width{64, 7}, Width{128, 52}}) {
      for (int i = static_cast<int>(KvFormat::kF32); i < kv::kNumKvFormats; ++i) {
        const auto coarser = static_cast<KvFormat>(i);
        if (!kv::supports(coarser, head_dim)) continue;
        const bool is_new = coarser <= KvFormat::kQ12;
        for (const std::int32_t tokens : {1, 5, 40}) {
          AttentionShape shape = {.num_query_tokens = tokens,
                                  .group_size = tokens == 5 ? 3 : 2,
                                  .head_dim = head_dim,
                                  .num_keys = 600 + 13 * tokens,
                                  .window = tokens == 5 ? 300 : 0,
                                  .ahead = tokens == 40 ? 4 : 0,
                                  .softcap = tokens == 5 ? 20.0f : 0.0f,
                                  .format = is_new ? coarser : KvFormat::kF16,
                                  .seed = seed++};
          if (tokens == 40) shape.num_later_keys = 7;
          if (!is_new) shape.coarser = {coarser};
          if (tokens == 5) shape.holes = {31};
          add_chunks(shape);
        }
      }
    }
    // Cells of all formats together.
    AttentionShape mixed = {
        .num_query_tokens = 3, .group_size = 4, .head_dim = 64, .num_keys = 700, .seed = 99};
    for (int i = static_cast<int>(KvFormat::kF16); i < kv::kNumKvFormats; ++i) {
      mixed.coarser.push_back(static_cast<KvFormat>(i));
    }
    add_chunks(mixed);
  }

  // A chunk's outputs, without the logarithm that the math library makes of them.
  void add_chunks(const AttentionShape& shape) {
    const AttentionProblem problem(shape);
    const auto rows = size_of(problem.num_rows());
    Hash hash;
    for (std::int32_t chunk = 0; chunk < problem.num_chunks(); ++chunk) {
      Floats out(rows * size_of(shape.head_dim)), max(rows), sum(rows);
      Floats block_sums(rows * (kTokensPerChunk / kTokensPerCell));
      AttentionArgs args = problem.chunk_args(chunk, 0, shape.num_query_tokens);
      args.out = out.data();
      args.max = max.data();
      args.sum = sum.data();
      args.block_sums = block_sums.data();
      table_.attention(args);
      for (const Floats* each : {&out, &max, &sum, &block_sums}) hash.add(*each);
    }
    add_case("attention " + shape.to_string(), hash);
  }

  void add_merge() {
    constexpr std::int32_t kChunks = 5, kRows = 6, kGroup = 3, kHeadDim = 72;
    const Floats out = random_floats(kChunks * kRows * kHeadDim, 1.0f, 17);
    const Floats max = random_floats(kChunks * kRows, 5.0f, 18);
    Floats sum = random_floats(kChunks * kRows, 1.0f, 19);
    for (float& each : sum) each = std::fabs(each);
    sum[4] = 0.0f;
    const Floats sinks = random_floats(kGroup, 2.0f, 20);
    for (const bool has_sinks : {false, true}) {
      Floats merged(size_of(kRows * kHeadDim));
      table_.attention_merge({.partial_out = out.data(),
                              .partial_max = max.data(),
                              .partial_sum = sum.data(),
                              .num_chunks = kChunks,
                              .num_rows = kRows,
                              .group_size = kGroup,
                              .head_dim = kHeadDim,
                              .out = merged.data(),
                              .out_stride = kGroup * kHeadDim,
                              .log_sum_exp = nullptr,
                              .sinks = has_sinks ? sinks.data() : nullptr});
      Hash hash;
      hash.add(merged);
      add_case(has_sinks ? "attention_merge with sinks" : "attention_merge", hash);
    }
  }

  const KernelTable& table_;
  std::vector<BitCase> cases_;
};

}  // namespace

std::string BitCase::to_string() const { return fmt::format("{:016x} {}", hash, name); }

std::vector<BitCase> bit_cases(const KernelTable& table) { return BitCases(table).make(); }

}  // namespace kvasir::kernels
