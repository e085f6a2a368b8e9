// Rows of weights that other engines have quantised, in the native type that loses least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/row_reader.h"

namespace kvasir::io {

// Scales of a matrix as they are stored: F32, F16 or BF16 numbers.
struct ScaleTable {
  DType dtype = DType::kF32;
  const std::byte* data = nullptr;

  float at(std::int64_t index) const;
};

// How rows that are computed as floats are given: in Q8_0 (BF16 where its blocks do not divide a row), or as they are.
enum class ComputedFloats : std::uint8_t { kRounded, kExact };

// 8-bit floats [rows, row_length], each less its zero and times its scale, where a scale is one of `scale_rows` x `scale_columns`.
struct Float8Weight {
  const std::byte* data = nullptr;
  bool is_integer = false;  // signed bytes instead
  std::int64_t num_rows = 0, row_length = 0;
  ScaleTable scales;
  const std::byte* zeros = nullptr;  // of integers: signed bytes, one for each scale; null: every zero is 0
  std::int64_t block_rows = 1, block_columns = 1;  // of weights that share a scale
  std::int64_t scales_per_row = 1;                 // in a row of the table
  ComputedFloats floats = ComputedFloats::kRounded;
};
RowReaderPtr float8_rows(const Float8Weight& weight);

// Codes in groups along the inputs.
enum class CodeLayout : std::uint8_t { kCompressed, kGptq, kAwq };
struct GroupedWeight {
  CodeLayout layout = CodeLayout::kCompressed;
  int bits = 4;  // or 8
  std::int64_t num_rows = 0, row_length = 0, group_size = 0, num_groups = 0;
  const std::byte* codes = nullptr;
  const std::byte* zeros = nullptr;    // packed; null: every zero is the middle code
  int zero_offset = 0;                 // added to what is stored
  ScaleTable scales;                   // [rows, groups], or [groups, rows] of GPTQ and AWQ
  std::vector<std::int32_t> group_of;  // of each input, where the groups are no runs; else empty
  ComputedFloats floats = ComputedFloats::kRounded;
};
// Symmetric codes keep their value: Q4_0 or Q8_0 with the group's scale. Others of 4 bits become Q4_1. Groups that are
// no multiples of 32, or no runs, are computed as floats.
RowReaderPtr grouped_rows(GroupedWeight weight);

// MXFP4 blocks as gpt-oss stores them: nibbles [rows, blocks, 16] and exponents [rows, blocks].
RowReaderPtr mxfp4_rows(std::int64_t num_rows, std::int64_t num_blocks, const std::byte* nibbles,
                        const std::byte* exponents);

// Pairs of E2M1 numbers (the even one low) [rows, row_length / 2], E4M3 scales of 16 over one divisor.
struct Nvfp4Weight {
  std::int64_t num_rows = 0, row_length = 0;
  const std::byte *nibbles = nullptr, *scales = nullptr;
  float divisor = 1.0f;
  ComputedFloats floats = ComputedFloats::kRounded;
};
RowReaderPtr nvfp4_rows(const Nvfp4Weight& weight);

}  // namespace kvasir::io
