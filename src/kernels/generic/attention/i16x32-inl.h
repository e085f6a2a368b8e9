// The two matrix products of attention over cells of integer codes, for a strip of query rows. Included
// inside an ISA's namespace and target region.
//
// The other operand is rounded to 16-bit integers as well. So sums of products are exact, whatever their
// order; the few float operations around them are the same for every height of a strip.
//
// No sum leaves 32 bits: of keys with a range per channel, 32 channels x 2^14 x 15 x 255 < 2^31; of values of
// 12 bits, 64 tokens x (2^14 - 1) x (2^11 - 1) < 2^31; of others, 512 x 2^14 x 2^7 at most.

#include "kernels/generic/attention/components-inl.h"

// A place in a cell's codes: the codes of the step there, their ranges, and the lines to ask for.
template <class Codes>
struct CodeCursor {
  static constexpr int kStepsPerGroup = kVectorsPerGroup / Codes::kVectorsPerStep;
  const std::byte* step;
  const std::byte* ranges;
  const std::byte* next;
  int lines_per_group;

  CodeCursor(const HalfCell& cell, std::int64_t group) {
    step = (cell.widened == nullptr ? cell.data : cell.widened) +
           group * kStepsPerGroup * Codes::kBytesPerStep;
    ranges = cell.ranges + group * kv::kChannelsPerScale * sizeof(kv::ChannelRange);
    lines_per_group = cell.next_lines_per_group;
    next = cell.next + group * lines_per_group * 64;
  }
  CodeCursor() = default;
  // Asks for the lines that belong to one of kSteps steps: for all in equal parts, as bursts would make what
  // is read here wait.
  template <int kSteps>
  KVASIR_FORCE_INLINE void prefetch(int step_in_group) {
    const int end = lines_per_group * (step_in_group + 1) / kSteps;
    for (int line = lines_per_group * step_in_group / kSteps; line < end; ++line) {
      prefetch_into_l2(next + 64 * line);
    }
  }
  KVASIR_FORCE_INLINE void advance() {
    step += Codes::kBytesPerStep;
    ranges += 2 * Codes::kVectorsPerStep * sizeof(kv::ChannelRange);
  }
};

// The channels of a vector of keys, and those of the others of its step.
template <class Codes, int kVector, int kRows, int kCells>
KVASIR_FORCE_INLINE void add_key_vectors(const std::int16_t* q, const CodeCursor<Codes> (&keys)[kCells],
                                         I32x16 (&sums)[kRows][kCells]) {
  I16x32 key[kCells];
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) key[c] = Codes::template at<kVector>(keys[c].step, keys[c].ranges);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const I16x32 query = broadcast_pair(q + r * kQueryStride + 2 * kVector);
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) sums[r][c] = add_products(sums[r][c], query, key[c]);
  }
  if constexpr (kVector + 1 < Codes::kVectorsPerStep) {
    add_key_vectors<Codes, kVector + 1>(q, keys, sums);
  }
}

// scores = q . lows, of keys with a range per channel.
template <int kRows, int kCells>
static void score_lows(const RoundedRows& q, const KeyCell* cells, std::int32_t head_dim) {
  I32x16 sums[kRows][kCells];
  F32x16 units[kCells];
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
    units[c] = load_low_unit(cells[c].cell->scales);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][c] = zero_int();
  }
  for (std::int64_t d = 0; d < head_dim; d += kI16PerVector) {
    I16x32 lows[kCells];
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) {
      lows[c] = shift_right_signed<8>(load_i16x32(cells[c].cell->ranges + d * sizeof(kv::ChannelRange)));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const I16x32 query = load_i16x32(q.i16 + r * kQueryStride + d);
#pragma GCC unroll 8
      for (int c = 0; c < kCells; ++c) sums[r][c] = add_products(sums[r][c], query, lows[c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    float of_cells[kCells];
    if constexpr (kCells == 4) {
      reduce_add4(to_float(sums[r][0]), to_float(sums[r][1]), to_float(sums[r][2]), to_float(sums[r][3]),
                  of_cells);
    } else {
#pragma GCC unroll 8
      for (int c = 0; c < kCells; ++c) of_cells[c] = reduce_add(to_float(sums[r][c]));
    }
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) {
      store(cells[c].scores + r * kTokensPerTile, mul(broadcast(of_cells[c]), units[c]));
    }
  }
}

// Adds the products of a group of channels to the scores, which are the first unless `adds` and final if it
// is the last. A function of its own so that the sums of its loop are all that wants registers.
template <class Codes, int kRows, int kCells>
KVASIR_NO_INLINE static void score_i16_group(const RoundedRows& q, const KeyCell* cells, std::int64_t group,
                                             bool adds, bool is_last) {
  I32x16 sums[kRows][kCells];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) sums[r][c] = zero_int();
  }
  CodeCursor<Codes> keys[kCells];
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
    keys[c] = CodeCursor<Codes>(*cells[c].cell, group);
  }
  const std::int16_t* i16 = q.i16 + group * kv::kChannelsPerScale;
  for (int step = 0; step < CodeCursor<Codes>::kStepsPerGroup; ++step) {
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) keys[c].template prefetch<CodeCursor<Codes>::kStepsPerGroup>(step);
    add_key_vectors<Codes, 0>(i16, keys, sums);
#pragma GCC unroll 8
    for (int c = 0; c < kCells; ++c) keys[c].advance();
    i16 += 2 * Codes::kVectorsPerStep;
  }
#pragma GCC unroll 8
  for (int c = 0; c < kCells; ++c) {
    const F32x16 scale = load_scales(cells[c].cell->code, cells[c].cell->scales, group);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      float* scores = cells[c].scores + r * kTokensPerTile;
      F32x16 sum = mul(to_float(sums[r][c]), scale);
      if (adds) sum = add(sum, load(scores));
      store(scores, is_last ? mul(sum, broadcast(q.units[r])) : sum);
    }
  }
}

// scores[row][lane] = q[row] . key, for kCells cells of one code.
template <class Codes, int kRows, int kCells>
static void score_i16_cells(const RoundedRows& q, const KeyCell* cells, std::int32_t head_dim) {
  const bool has_lows = kv::has_range_per_channel(cells[0].cell->code);
  if (has_lows) score_lows<kRows, kCells>(q, cells, head_dim);
  const std::int64_t num_groups = head_dim / kv::kChannelsPerScale;
  for (std::int64_t group = 0; group < num_groups; ++group) {
    score_i16_group<Codes, kRows, kCells>(q, cells, group, group > 0 || has_lows, group + 1 == num_groups);
  }
}

// `count` cells of one code against a strip.
template <class Codes, int kRows>
static void score_i16_strip(const RoundedRows& q, const KeyCell* cells, int count, std::int32_t head_dim) {
  constexpr int kBeside = vectors_beside(kRows);
  int c = 0;
  for (; c + kBeside <= count; c += kBeside) score_i16_cells<Codes, kRows, kBeside>(q, cells + c, head_dim);
  for (; c < count; ++c) score_i16_cells<Codes, kRows, 1>(q, cells + c, head_dim);
}

// The tokens of kPerGroup of a group's two vectors of values, from vector kVector of a step on, and those of the others of
// their step.
template <class Codes, int kVector, int kPerGroup, int kRows, int kGroups>
KVASIR_FORCE_INLINE void add_value_vectors(const std::int16_t* weights, const WeightedCells& in,
                                           const CodeCursor<Codes> (&values)[kGroups],
                                           I32x16 (&sums)[kRows][kPerGroup * kGroups]) {
  I16x32 value[kPerGroup * kGroups];
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) {
    value[kPerGroup * g] = Codes::template at<kVector>(values[g].step, nullptr);
    if constexpr (kPerGroup == 2) value[2 * g + 1] = Codes::template at<kVector + 1>(values[g].step, nullptr);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const I16x32 weight = broadcast_pair(weights + g * in.group_stride + r * kTokensPerTile + kVector / 2 * 2);
#pragma GCC unroll 2
      for (int i = 0; i < kPerGroup; ++i) {
        const int v = kPerGroup * g + i;
        sums[r][v] = add_products(sums[r][v], weight, value[v]);
      }
    }
  }
  if constexpr (kVector + 2 < Codes::kVectorsPerStep) {
    add_value_vectors<Codes, kVector + 2, kPerGroup>(weights, in, values, sums);
  }
}

// out[row][column ...] = out * corrections[row] + sums; out is [kRows][head_dim].
template <int kRows, int kVectors>
KVASIR_FORCE_INLINE void add_sums(const WeightedCells& in, const I32x16 (&sums)[kRows][kVectors],
                                  std::int64_t column, float* out) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const F32x16 correction = broadcast(in.corrections[r]), unit = broadcast(in.weights.units[r]);
    float* row = out + r * in.head_dim + column;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      store(row + 16 * v, fma(to_float(sums[r][v]), unit, mul(load(row + 16 * v), correction)));
    }
  }
}

// The weighted values of kGroups x 32 channels, or of 16 from vector kFirst of a group on.
template <class Codes, int kRows, int kGroups, int kFirst = 0, int kPerGroup = 2>
static void add_i16_columns(const WeightedCells& in, std::int64_t group, float* out) {
  I32x16 sums[kRows][kPerGroup * kGroups];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kPerGroup * kGroups; ++v) sums[r][v] = zero_int();
  }
  const std::int16_t* weights = in.weights.i16 + group * in.group_stride;
  for (int c = 0; c < in.num_cells; ++c) {
    CodeCursor<Codes> values[kGroups];
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      values[g] = CodeCursor<Codes>(*in.cells[c], group + g);
    }
    for (int step = 0; step < CodeCursor<Codes>::kStepsPerGroup; ++step) {
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        if constexpr (kFirst == 0) values[g].template prefetch<CodeCursor<Codes>::kStepsPerGroup>(step);
      }
      add_value_vectors<Codes, kFirst, kPerGroup>(weights, in, values, sums);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) values[g].step += Codes::kBytesPerStep;
      weights += Codes::kVectorsPerStep;
    }
  }
  add_sums(in, sums, group * kv::kChannelsPerScale + 16 * kFirst, out);
}

template <class Codes, int kFirst, int kVectors>
KVASIR_FORCE_INLINE void read_vectors(const std::byte* step, I16x32* vectors) {
  vectors[0] = Codes::template at<kFirst>(step, nullptr);
  if constexpr (kVectors > 1) read_vectors<Codes, kFirst + 1, kVectors - 1>(step, vectors + 1);
}

// Adds the weighted values of two joined groups: kVectors x 16 channels, from vector kFirst of each step on.
template <class Codes, int kRows, int kFirst, int kVectors>
static void add_joined_columns(const WeightedCells& in, std::int64_t group, float* out) {
  I32x16 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = zero_int();
  }
  const std::int16_t* weights = in.weights.i16;
  for (int c = 0; c < in.num_cells; ++c) {
    CodeCursor<Codes> values(*in.cells[c], group);
    values.lines_per_group *= 2;  // both groups' lines
    for (int token = 0; token < kTokensPerCell; token += 2) {
      if constexpr (kFirst == 0) values.template prefetch<kTokensPerCell / 2>(token / 2);
      I16x32 value[kVectors];
      read_vectors<Codes, kFirst, kVectors>(values.step, value);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const I16x32 weight = broadcast_pair(weights + r * kTokensPerTile + token);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[r][v] = add_products(sums[r][v], weight, value[v]);
      }
      values.step += Codes::kBytesPerStep;
    }
    weights += kTokensPerCell;
  }
  add_sums(in, sums, group * kv::kChannelsPerScale + 16 * kFirst, out);
}

template <class Codes, int kRows>
static void add_joined_strip(const WeightedCells& in, float* out) {
  for (std::int64_t group = 0; group < in.head_dim / kv::kChannelsPerScale; group += 2) {
    if constexpr (vectors_beside(kRows) == 4) {
      add_joined_columns<Codes, kRows, 0, 4>(in, group, out);
    } else if constexpr (vectors_beside(kRows) == 1) {
      add_joined_columns<Codes, kRows, 0, 1>(in, group, out);
      add_joined_columns<Codes, kRows, 1, 1>(in, group, out);
      add_joined_columns<Codes, kRows, 2, 1>(in, group, out);
      add_joined_columns<Codes, kRows, 3, 1>(in, group, out);
    } else {
      add_joined_columns<Codes, kRows, 0, 2>(in, group, out);
      add_joined_columns<Codes, kRows, 2, 2>(in, group, out);
    }
  }
}

template <class Codes, int kRows>
static void add_i16_strip(const WeightedCells& in, float* out) {
  if constexpr (Codes::kGroupsPerStep == 2) return add_joined_strip<Codes, kRows>(in, out);
  const std::int64_t num_groups = in.head_dim / kv::kChannelsPerScale;
  std::int64_t group = 0;
  if constexpr (vectors_beside(kRows) == 4) {
    for (; group + 2 <= num_groups; group += 2) add_i16_columns<Codes, kRows, 2>(in, group, out);
  }
  for (; group < num_groups; ++group) {
    if constexpr (vectors_beside(kRows) == 1) {
      add_i16_columns<Codes, kRows, 1, 0, 1>(in, group, out);
      add_i16_columns<Codes, kRows, 1, 1, 1>(in, group, out);
    } else {
      add_i16_columns<Codes, kRows, 1>(in, group, out);
    }
  }
}

// Strips of 1 to 6 rows by number.
template <class Codes>
static void score_i16_rows(int num_rows, const RoundedRows& q, const KeyCell* cells, int count,
                           std::int32_t head_dim) {
  switch (num_rows) {
    case 1:
      return score_i16_strip<Codes, 1>(q, cells, count, head_dim);
    case 2:
      return score_i16_strip<Codes, 2>(q, cells, count, head_dim);
    case 3:
      return score_i16_strip<Codes, 3>(q, cells, count, head_dim);
    case 4:
      return score_i16_strip<Codes, 4>(q, cells, count, head_dim);
    case 5:
      return score_i16_strip<Codes, 5>(q, cells, count, head_dim);
    default:
      return score_i16_strip<Codes, 6>(q, cells, count, head_dim);
  }
}

template <class Codes>
static void add_i16_rows(int num_rows, const WeightedCells& in, float* out) {
  switch (num_rows) {
    case 1:
      return add_i16_strip<Codes, 1>(in, out);
    case 2:
      return add_i16_strip<Codes, 2>(in, out);
    case 3:
      return add_i16_strip<Codes, 3>(in, out);
    case 4:
      return add_i16_strip<Codes, 4>(in, out);
    case 5:
      return add_i16_strip<Codes, 5>(in, out);
    default:
      return add_i16_strip<Codes, 6>(in, out);
  }
}

static void score_i16(int num_rows, const RoundedRows& q, const KeyCell* cells, int count,
                      std::int32_t head_dim) {
  if (cells[0].cell->widened != nullptr) {
    return score_i16_rows<W8a8Codes>(num_rows, q, cells, count, head_dim);
  }
  switch (cells[0].cell->code) {
    case kv::KvCode::k12:
      return score_i16_rows<Codes12>(num_rows, q, cells, count, head_dim);
    case kv::KvCode::k8:
      return score_i16_rows<Codes8>(num_rows, q, cells, count, head_dim);
    case kv::KvCode::k4:
      return score_i16_rows<Codes4>(num_rows, q, cells, count, head_dim);
    case kv::KvCode::k4Channel:
      return score_i16_rows<Codes4ByChannel>(num_rows, q, cells, count, head_dim);
    case kv::KvCode::k3Channel:
      return score_i16_rows<Codes3ByChannel>(num_rows, q, cells, count, head_dim);
    case kv::KvCode::k3:
      return score_i16_rows<Codes3>(num_rows, q, cells, count, head_dim);
    default:  // floats, and k2, which is of values only
      return;
  }
}

static void add_i16(int num_rows, const WeightedCells& in, float* out) {
  if (in.cells[0]->widened != nullptr) return add_i16_rows<W8a8Codes>(num_rows, in, out);
  switch (in.cells[0]->code) {
    case kv::KvCode::k12:
      return add_i16_rows<Codes12>(num_rows, in, out);
    case kv::KvCode::k8:
      return add_i16_rows<Codes8>(num_rows, in, out);
    case kv::KvCode::k4:
      return add_i16_rows<Codes4>(num_rows, in, out);
    case kv::KvCode::k3:
      return add_i16_rows<Codes3>(num_rows, in, out);
    case kv::KvCode::k2:
      return add_i16_rows<Codes2>(num_rows, in, out);
    default:
      return;
  }
}
