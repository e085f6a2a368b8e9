// Keys in principal components (kv/cells/key_basis.h): writing and reading whole cells.
// Included inside an ISA's namespace and target region; ref/key_components.cc is the definition of the bytes.

#include "kernels/generic/kv/halves-inl.h"

// Vectors side by side in a register tile of `rows`: accumulators, one row of vectors and a broadcast must
// fit.
constexpr int vectors_beside(int rows) {
  if (rows * 4 + 4 + 1 <= kVectorRegisters) return 4;
  if (rows * 2 + 2 + 1 <= kVectorRegisters) return 2;
  return 1;
}

static RopeStyle style_of(const kv::KeyBasis& basis) {
  return basis.turns_halves ? RopeStyle::kHalves : RopeStyle::kInterleaved;
}

// Turns a row back by the position of the block's first token.
static void turn_back(const kv::KeyBasis& basis, std::int32_t block, float* row) {
  const float* const angles = basis.angles_of(block);
  rope(row, angles, angles + basis.rotary_dim / 2, basis.rotary_dim, style_of(basis));
}

static void turn_forward(const kv::KeyBasis& basis, std::int32_t block, float* row) {
  const float* const angles = basis.angles_of(block);
  float sines[kMaxHeadDim / 2];
  for (std::int32_t i = 0; i < basis.rotary_dim / 2; ++i) sines[i] = -angles[basis.rotary_dim / 2 + i];
  rope(row, angles, sines, basis.rotary_dim, style_of(basis));
}

// out[row][column ...] = offset + row x of_keys, kVectors vectors wide. Each is one chain of fma over the channels.
template <int kRows, int kVectors>
static void project_columns(const kv::KeyBasis& basis, const float* rows, std::int64_t head_dim, std::int64_t column, float* out) {
  F32x16 acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const F32x16 start = load(basis.key_offsets + column + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) acc[r][v] = start;
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    F32x16 factor[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) factor[v] = load(basis.of_keys + d * basis.stride + column + 16 * v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32x16 x = broadcast(rows[r * head_dim + d]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[r][v] = fma(x, factor[v], acc[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store(out + r * basis.stride + column + 16 * v, acc[r][v]);
  }
}

// All columns; `out` is [kRows][stride].
template <int kRows>
static void project_keys(const kv::KeyBasis& basis, const float* rows, std::int64_t head_dim, float* out) {
  constexpr int kBeside = vectors_beside(kRows);
  std::int64_t column = 0;
  for (; column + 16 * kBeside <= basis.stride; column += 16 * kBeside) {
    project_columns<kRows, kBeside>(basis, rows, head_dim, column, out);
  }
  for (; column < basis.stride; column += 16) project_columns<kRows, 1>(basis, rows, head_dim, column, out);
}

// Writes the planes of the numbers [16][stride].
static void pack_planes(const kv::KeyBasis& basis, const std::int16_t* numbers, std::byte* half) {
  auto* plane = reinterpret_cast<std::uint16_t*>(half);
  for (int bit = kv::kMaxComponentBits; bit-- > 0;) {
    for (std::int64_t c = 0; c < basis.num_with_bit[bit]; ++c) {
      unsigned word = 0;
      for (int t = 0; t < kTokensPerCell; ++t) word |= (static_cast<unsigned>(numbers[t * basis.stride + c]) >> bit & 1u) << t;
      *plane++ = static_cast<std::uint16_t>(word);
    }
  }
}

// Keys [head_dim][16].
static void write_keys_components(const kv::KeyBasis& basis, std::int32_t block, const float* keys, std::int32_t head_dim,
                                  std::byte* half) {
  constexpr int kRows = 4;
  alignas(64) std::int16_t numbers[kTokensPerCell * kMaxHeadDim];
  for (int first = 0; first < kTokensPerCell; first += kRows) {
    alignas(64) float rows[kRows * kMaxHeadDim], projected[kRows * kMaxHeadDim];
    for (int r = 0; r < kRows; ++r) {
      float* const row = rows + std::int64_t{r} * head_dim;
      for (std::int64_t d = 0; d < head_dim; ++d) row[d] = keys[d * kTokensPerCell + first + r];
      turn_back(basis, block, row);
    }
    project_keys<kRows>(basis, rows, head_dim, projected);
    for (std::int64_t i = 0; i < kRows * std::int64_t{basis.stride}; i += 16) {
      const F32x16 greatest = load(basis.greatest_numbers + i % basis.stride);
      store_as_i16(numbers + first * std::int64_t{basis.stride} + i, round_to_int(min(max(load(projected + i), zero()), greatest)));
    }
  }
  pack_planes(basis, numbers, half);
}

// Keys [head_dim][16] of a half.
static void read_keys_components(const kv::KeyBasis& basis, std::int32_t block, const std::byte* half, std::int32_t head_dim,
                                 float* keys) {
  alignas(64) float numbers[kMaxHeadDim * kTokensPerCell] = {};
  const auto* plane = reinterpret_cast<const std::uint16_t*>(half);
  for (int bit = kv::kMaxComponentBits; bit-- > 0;) {
    const F32x16 value = broadcast(static_cast<float>(1 << bit));
    for (std::int64_t c = 0; c < basis.num_with_bit[bit]; ++c) {
      store(numbers + c * kTokensPerCell, add_where(lanes_of(*plane++), load(numbers + c * kTokensPerCell), value));
    }
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const float* const columns = basis.of_queries + d * basis.stride;
    F32x16 key = broadcast(basis.constants[d]);
    for (std::int64_t c = 0; c < basis.num_components; ++c) key = fma(broadcast(columns[c]), load(numbers + c * kTokensPerCell), key);
    store(keys + d * kTokensPerCell, key);
  }
  for (int t = 0; t < kTokensPerCell; ++t) {
    alignas(64) float row[kMaxHeadDim];
    for (std::int64_t d = 0; d < head_dim; ++d) row[d] = keys[d * kTokensPerCell + t];
    turn_forward(basis, block, row);
    for (std::int64_t d = 0; d < head_dim; ++d) keys[d * kTokensPerCell + t] = row[d];
  }
}
