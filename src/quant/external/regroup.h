// Rows of other engines' quantisation as GGUF blocks, without a second rounding of their codes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::quant {

// value = scale * (code - zero) for each group of `group_size` codes of a row; the last group may be short.
struct GroupedRow {
  const std::uint8_t* codes = nullptr;
  const float* scales = nullptr;  // by group
  const std::uint8_t* zeros = nullptr;
  std::int64_t length = 0, group_size = 0;
};

// Writers of whole blocks of 32. Require: length and group_size are multiples of 32. Scales and minima are rounded to
// half precision, and nothing else.
void write_q4_0(const GroupedRow& row, std::byte* out);  // requires codes < 16 and every zero 8
void write_q4_1(const GroupedRow& row, std::byte* out);  // requires codes < 16
void write_q8_0(const GroupedRow& row, std::byte* out);  // requires every zero 128

// As floats, with any group size. `group_of` (may be null) gives the group of each code.
void write_floats(const GroupedRow& row, const std::int32_t* group_of, float* out);

// A row of MXFP4 as gpt-oss stores it (pairs of neighbours, the even one low; exponents apart) as GGUF's blocks.
void write_mxfp4(const std::byte* nibbles, const std::byte* exponents, std::int64_t num_blocks, std::byte* out);

}  // namespace kvasir::quant
