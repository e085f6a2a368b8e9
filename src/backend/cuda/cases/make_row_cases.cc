// Ops that go row by row: norms, quantisation, gates, maxima, embeddings.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "backend/cuda/cases/make_cases.h"
#include "backend/cuda/cases/random_floats.h"
#include "backend/cuda/kernels/launchers.h"
#include "kernels/activation.h"
#include "kernels/random_weights.h"

namespace kvasir::cuda {
namespace {

using kernels::KernelTable;
using Floats = std::span<const float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct QuantizeShape {
  std::int64_t k;
  std::int32_t tokens;
  bool is_normed, w8a8;
  std::uint32_t seed;
};

OpCase make_quantize_case(const KernelTable& table, const QuantizeShape& shape) {
  const auto& [k, tokens, is_normed, w8a8, seed] = shape;
  std::vector<float> x = random_floats(tokens * k, std::ldexp(1.0f, static_cast<int>(seed % 40) - 20), seed);
  if (seed % 4 == 1) x[static_cast<std::size_t>(k / 2)] = seed % 8 == 1 ? kNan : kInfinity;
  if (seed % 4 == 2) std::fill(x.begin(), x.begin() + k, seed % 8 == 2 ? 0.0f : 1e-38f);
  const std::vector<float> weight = random_floats(k, 1.0f, seed + 1);
  const auto bytes = static_cast<std::size_t>(table.activation_bytes(k, tokens));
  // Vectors read what lies between and behind rows, and write none of it.
  const std::vector<std::uint8_t> before(bytes + 64, 0xcd);
  std::vector<std::uint8_t> storage = before;
  std::uint8_t* const quantized = storage.data() +
                                  (64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) % 64;
  std::vector<std::uint8_t> is_usual;
  std::vector<float> row(static_cast<std::size_t>(k));
  for (std::int32_t t = 0; t < tokens; ++t) {
    std::copy_n(x.data() + t * k, k, row.data());
    if (is_normed) table.rms_norm(row.data(), weight.data(), 1e-5f, k, row.data());
    is_usual.push_back(
        (w8a8 ? table.quantize_row_w8a8 : table.quantize_row)(row.data(), k, t, tokens, quantized));
  }
  OpCase result{.op = "quantize",
                .name = "k " + std::to_string(k) + " tokens " + std::to_string(tokens) +
                        (is_normed ? " normed" : "") + " seed " + std::to_string(seed) +
                        (w8a8 ? " w8a8" : ""),
                .numbers = {k, tokens, w8a8}};
  result.add_input(Floats(x));
  result.add_input(is_normed ? Floats(weight) : Floats());
  result.add_in_out(ArrayKind::kBytes, std::span(before).first(bytes),
                    std::span<const std::uint8_t>(quantized, bytes));
  result.add_output(ArrayKind::kBytes, std::span<const std::uint8_t>(is_usual));
  return result;
}

OpCase make_norm_case(const KernelTable& table, RowNorm kind, std::int64_t width, std::int64_t rows,
                      std::uint32_t seed) {
  std::vector<float> x = random_floats(rows * width, 3.0f, seed);
  if (seed % 5 == 4) x[0] = 1e30f;  // its square is no float
  const std::vector<float> weight = random_floats(width, 1.0f, seed + 1),
                           bias = random_floats(width, 1.0f, seed + 2);
  const std::vector<float> before = random_floats(rows * width, 1.0f, seed + 3);
  std::vector<float> out = before;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* from = x.data() + r * width;
    float* to = out.data() + r * width;
    if (kind == RowNorm::kRms) table.rms_norm(from, weight.data(), 1e-5f, width, to);
    if (kind == RowNorm::kRmsAdd) table.rms_norm_add(from, weight.data(), 1e-5f, width, to);
    if (kind == RowNorm::kLayer) table.layer_norm(from, weight.data(), bias.data(), 1e-5f, width, to);
  }
  OpCase result{.op = "norm",
                .name = "kind " + std::to_string(static_cast<int>(kind)) + " width " + std::to_string(width) +
                        " rows " + std::to_string(rows) + " seed " + std::to_string(seed),
                .numbers = {static_cast<std::int64_t>(kind), width, rows}};
  for (const auto& each : {Floats(x), Floats(weight), Floats(bias)}) result.add_input(each);
  result.add_in_out(ArrayKind::kFloats, Floats(before), Floats(out));
  return result;
}

void compute(const KernelTable& table, Elementwise function, const float* a, const float* b, float factor,
             std::int64_t n, float* out) {
  switch (function) {
    case Elementwise::kSiluMul:
      return table.silu_mul(a, b, n, out);
    case Elementwise::kGeluTanhMul:
      return table.gelu_tanh_mul(a, b, n, out);
    case Elementwise::kGeluErfMul:
      return table.gelu_erf_mul(a, b, n, out);
    case Elementwise::kSwigluOai:
      return table.swiglu_oai(a, b, n, out);
    case Elementwise::kAdd:
      return table.add(a, b, n, out);
    case Elementwise::kScale:
      return table.scale(a, factor, n, out);
    case Elementwise::kAddScaled:
      return table.add_scaled(a, factor, n, out);
    case Elementwise::kSoftCap:
      return table.soft_cap(a, factor, n, out);
  }
}

OpCase make_elementwise_case(const KernelTable& table, Elementwise function, std::int64_t n, bool has_b) {
  const auto seed = static_cast<std::uint32_t>(function);
  std::vector<float> a = random_floats(n, 4.0f, seed);
  const float unusual[] = {0.0f,    -0.0f,    1e-40f,    -1e-40f,    88.0f, -88.0f,
                           1000.0f, -1000.0f, kInfinity, -kInfinity, kNan};
  std::copy(std::begin(unusual), std::end(unusual), a.begin());
  const std::vector<float> b = random_floats(n, 4.0f, seed + 1), before = random_floats(n, 1.0f, seed + 2);
  std::vector<float> out = before;
  const float factor = function == Elementwise::kSoftCap ? 30.0f : 0.37f;
  compute(table, function, a.data(), has_b ? b.data() : nullptr, factor, n, out.data());
  OpCase result{.op = "elementwise",
                .name = "function " + std::to_string(static_cast<int>(function)) + " n " + std::to_string(n) +
                        (has_b ? "" : " alone"),
                .numbers = {static_cast<std::int64_t>(function), n,
                            static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(factor))}};
  result.add_input(Floats(a));
  result.add_input(has_b ? Floats(b) : Floats());
  result.add_in_out(ArrayKind::kFloats, Floats(before), Floats(out));
  return result;
}

OpCase make_tile_maxima_case(const KernelTable& table, std::int64_t n, std::int64_t rows,
                             std::uint32_t seed) {
  std::vector<float> logits = random_floats(rows * n, 5.0f, seed);
  logits[logits.size() / 2] = kNan;
  logits[0] = -kInfinity;
  const std::int64_t tiles = (n + kernels::kLogitsPerTile - 1) / kernels::kLogitsPerTile;
  std::vector<float> maxima(static_cast<std::size_t>(rows * tiles));
  for (std::int64_t r = 0; r < rows; ++r)
    table.tile_maxima(logits.data() + r * n, n, maxima.data() + r * tiles);
  OpCase result{.op = "tile_maxima",
                .name = "n " + std::to_string(n) + " rows " + std::to_string(rows),
                .numbers = {n, rows}};
  result.add_input(Floats(logits));
  result.add_output(ArrayKind::kFloats, Floats(maxima));
  return result;
}

OpCase make_embed_case(const KernelTable& table, DType dtype, std::int64_t width, bool has_tables,
                       std::uint32_t seed) {
  constexpr std::int32_t kTokens = 20, kRows = 5;
  const kernels::RandomWeights weights = kernels::random_weights(dtype, kTokens, width, 0.1f, seed);
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens, types, positions;
  for (std::int32_t i = 0; i < kRows; ++i) {
    tokens.push_back(static_cast<std::int32_t>(random() % kTokens));
    types.push_back(static_cast<std::int32_t>(random() % 2));
    positions.push_back(static_cast<std::int32_t>(random() % 7));
  }
  const std::vector<float> type_table = random_floats(2 * width, 1.0f, seed + 1),
                           position_table = random_floats(7 * width, 1.0f, seed + 2);
  const float scale = has_tables ? 1.0f : 22.627f;
  std::vector<float> x(static_cast<std::size_t>(kRows * width));
  for (std::size_t i = 0; i < kRows; ++i) {
    float* row = x.data() + static_cast<std::int64_t>(i) * width;
    info_of(dtype).unpack_row(weights.row(tokens[i]), width, row);
    if (scale != 1.0f) table.scale(row, scale, width, row);
    if (!has_tables) continue;
    table.add(row, type_table.data() + types[i] * width, width, row);
    table.add(row, position_table.data() + positions[i] * width, width, row);
  }
  OpCase result{.op = "embed",
                .name = std::string(name_of(dtype)) + " width " + std::to_string(width) +
                        (has_tables ? " with positions" : ""),
                .numbers = {static_cast<std::int64_t>(dtype), width, kRows, weights.row_bytes(),
                            static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(scale))}};
  result.add_input(std::span<const char>(weights.bytes));
  result.add_input(std::span<const std::int32_t>(tokens));
  result.add_input(has_tables ? Floats(type_table) : Floats());
  result.add_input(std::span<const std::int32_t>(types));
  result.add_input(has_tables ? Floats(position_table) : Floats());
  result.add_input(std::span<const std::int32_t>(positions));
  result.add_output(ArrayKind::kFloats, Floats(x));
  return result;
}

}  // namespace

std::vector<OpCase> make_quantize_cases(const KernelTable& table) {
  std::vector<OpCase> cases;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const std::int64_t k = 32 * static_cast<std::int64_t>(1 + random() % (seed % 3 == 0 ? 40 : 9));
    cases.push_back(make_quantize_case(
        table, {k, 1 + static_cast<std::int32_t>(random() % 20), seed % 2 == 1 || seed == 6, false, seed}));
  }
  return cases;
}

std::vector<OpCase> make_w8a8_quantize_cases(const KernelTable& table) {
  std::vector<OpCase> cases;
  constexpr std::int64_t kWidths[] = {32, 224, 256, 288, 576, 640, 1024, 2400};
  for (std::uint32_t seed = 0; seed < 16; ++seed) {
    cases.push_back(make_quantize_case(
        table, {kWidths[seed / 2], 1 + static_cast<std::int32_t>(7 * seed % 20), seed % 3 == 1, true, seed}));
  }
  return cases;
}

std::vector<OpCase> make_norm_cases(const KernelTable& table) {
  std::vector<OpCase> cases;
  for (const RowNorm kind : {RowNorm::kRms, RowNorm::kRmsAdd, RowNorm::kLayer}) {
    std::uint32_t seed = 0;
    for (const std::int64_t width : {1, 16, 57, 576, 960}) {
      cases.push_back(make_norm_case(table, kind, width, 1 + seed % 3, seed));
      ++seed;
    }
  }
  return cases;
}

std::vector<OpCase> make_elementwise_cases(const KernelTable& table) {
  std::vector<OpCase> cases;
  for (int function = 0; function <= static_cast<int>(Elementwise::kSoftCap); ++function) {
    const auto each = static_cast<Elementwise>(function);
    cases.push_back(make_elementwise_case(table, each, 600, true));
    if (each <= Elementwise::kGeluErfMul) cases.push_back(make_elementwise_case(table, each, 37, false));
  }
  return cases;
}

std::vector<OpCase> make_tile_maxima_cases(const KernelTable& table) {
  return {make_tile_maxima_case(table, 1000, 3, 1), make_tile_maxima_case(table, 64, 1, 2),
          make_tile_maxima_case(table, 257, 2, 3)};
}

std::vector<OpCase> make_embed_cases(const KernelTable& table) {
  std::vector<OpCase> cases;
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ6_K}) {
    cases.push_back(make_embed_case(table, dtype, 512, false, static_cast<std::uint32_t>(dtype)));
    cases.push_back(make_embed_case(table, dtype, 256, true, 50 + static_cast<std::uint32_t>(dtype)));
  }
  return cases;
}

}  // namespace kvasir::cuda
