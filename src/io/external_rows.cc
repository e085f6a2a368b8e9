#include "io/external_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/mmap_file.h"
#include "quant/encode/encode.h"
#include "quant/external/e4m3.h"
#include "quant/external/packed_codes.h"
#include "quant/external/regroup.h"
#include "quant/mxfp4/format.h"
#include "quant/nibble_tables.h"

namespace kvasir::io {
namespace {

constexpr std::int64_t kBlock = 32;  // of the native types

std::uint8_t byte_at(const std::byte* data, std::int64_t index) { return static_cast<std::uint8_t>(data[index]); }

float signed_at(const std::byte* data, std::int64_t index) {
  return static_cast<float>(static_cast<std::int8_t>(byte_at(data, index)));
}

DType type_of_floats(ComputedFloats floats, std::int64_t row_length) {
  if (floats == ComputedFloats::kExact) return DType::kF32;
  return row_length % kBlock == 0 ? DType::kQ8_0 : DType::kBF16;
}

void write_row(DType dtype, const std::vector<float>& values, std::byte* out) {
  if (dtype == DType::kF32) {
    std::memcpy(out, values.data(), values.size() * sizeof(float));
  } else {
    quant::encoder_of(dtype)(values.data(), std::ssize(values), out);
  }
}

// Rows that are computed as floats and then encoded.
class FloatRows : public RowReader {
 public:
  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    std::vector<float> values(static_cast<std::size_t>(row_length()));
    for (std::int64_t row = begin; row < end; ++row, out += row_bytes()) {
      compute(row, values.data());
      write_row(dtype(), values, out);
    }
  }

 protected:
  FloatRows(ComputedFloats floats, std::int64_t num_rows, std::int64_t row_length)
      : RowReader(type_of_floats(floats, row_length), num_rows, row_length) {}

  virtual void compute(std::int64_t row, float* values) const = 0;
};

class Float8Rows final : public FloatRows {
 public:
  explicit Float8Rows(const Float8Weight& weight)
      : FloatRows(weight.floats, weight.num_rows, weight.row_length), weight_(weight) {}

  void release(std::int64_t begin, std::int64_t end) const override {
    MmapFile::release_pages(
        {weight_.data + begin * row_length(), static_cast<std::size_t>((end - begin) * row_length())});
  }

 private:
  void compute(std::int64_t row, float* values) const override {
    const std::byte* codes = weight_.data + row * row_length();
    const std::int64_t first_scale = row / weight_.block_rows * weight_.scales_per_row;
    for (std::int64_t begin = 0, block = 0; begin < row_length(); begin += weight_.block_columns, ++block) {
      const float scale = weight_.scales.at(first_scale + block);
      const float zero = weight_.zeros == nullptr ? 0.0f : signed_at(weight_.zeros, first_scale + block);
      const std::int64_t end = std::min(begin + weight_.block_columns, row_length());
      for (std::int64_t i = begin; i < end; ++i) {
        const float code = weight_.is_integer ? signed_at(codes, i) : quant::e4m3_to_float(byte_at(codes, i));
        values[i] = scale * (code - zero);
      }
    }
  }

  Float8Weight weight_;
};

class Nvfp4Rows final : public FloatRows {
 public:
  explicit Nvfp4Rows(const Nvfp4Weight& weight)
      : FloatRows(weight.floats, weight.num_rows, weight.row_length), weight_(weight) {}

  void release(std::int64_t begin, std::int64_t end) const override {
    const std::int64_t bytes = row_length() / 2;
    MmapFile::release_pages({weight_.nibbles + begin * bytes, static_cast<std::size_t>((end - begin) * bytes)});
  }

 private:
  void compute(std::int64_t row, float* values) const override {
    const std::byte* nibbles = weight_.nibbles + row * (row_length() / 2);
    const std::byte* scales = weight_.scales + row * (row_length() / 16);
    for (std::int64_t i = 0; i < row_length(); ++i) {
      const int code = byte_at(nibbles, i / 2) >> (i % 2 == 0 ? 0 : 4) & 15;
      const auto doubled = static_cast<float>(quant::kE2m1Codes[code] - quant::kE2m1Zero);
      values[i] = 0.5f * doubled * quant::e4m3_to_float(byte_at(scales, i / 16)) / weight_.divisor;
    }
  }

  Nvfp4Weight weight_;
};

class Mxfp4Rows final : public RowReader {
 public:
  Mxfp4Rows(std::int64_t num_rows, std::int64_t num_blocks, const std::byte* nibbles, const std::byte* exponents)
      : RowReader(DType::kMXFP4, num_rows, num_blocks * kBlock), nibbles_(nibbles), exponents_(exponents) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    const std::int64_t blocks = row_length() / kBlock;
    quant::write_mxfp4(nibbles_ + begin * blocks * 16, exponents_ + begin * blocks, (end - begin) * blocks, out);
  }
  void release(std::int64_t begin, std::int64_t end) const override {
    const std::int64_t bytes = row_length() / 2;
    MmapFile::release_pages({nibbles_ + begin * bytes, static_cast<std::size_t>((end - begin) * bytes)});
  }

 private:
  const std::byte *nibbles_, *exponents_;
};

DType type_of(const GroupedWeight& weight) {
  const bool has_runs = weight.group_of.empty() && weight.group_size % kBlock == 0 && weight.row_length % kBlock == 0;
  if (has_runs && weight.bits == 4) return weight.zeros == nullptr ? DType::kQ4_0 : DType::kQ4_1;
  return type_of_floats(weight.floats, weight.row_length);
}

class GroupedRows final : public RowReader {
 public:
  explicit GroupedRows(GroupedWeight weight)
      : RowReader(type_of(weight), weight.num_rows, weight.row_length), weight_(std::move(weight)) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(row_length()));
    std::vector<std::uint8_t> zeros(static_cast<std::size_t>(weight_.num_groups));
    std::vector<float> scales(zeros.size()), values(codes.size());
    for (std::int64_t row = begin; row < end; ++row, out += row_bytes()) {
      read_codes(row, codes.data());
      for (std::int64_t group = 0; group < weight_.num_groups; ++group) {
        zeros[static_cast<std::size_t>(group)] = zero_of(row, group);
        scales[static_cast<std::size_t>(group)] = weight_.scales.at(
            weight_.layout == CodeLayout::kCompressed ? row * weight_.num_groups + group : group * num_rows() + row);
      }
      write({.codes = codes.data(),
             .scales = scales.data(),
             .zeros = zeros.data(),
             .length = row_length(),
             .group_size = weight_.group_size},
            values, out);
    }
  }

  // Rows lie one after the other only in one layout; in the others each page has a part of all rows.
  void release(std::int64_t begin, std::int64_t end) const override {
    if (weight_.layout != CodeLayout::kCompressed) return;
    const std::int64_t bytes = row_length() * weight_.bits / 8;
    MmapFile::release_pages({weight_.codes + begin * bytes, static_cast<std::size_t>((end - begin) * bytes)});
  }

 private:
  void read_codes(std::int64_t row, std::uint8_t* codes) const {
    const quant::PackedCodes packed{
        .words = weight_.codes, .num_outputs = num_rows(), .num_inputs = row_length(), .bits = weight_.bits};
    switch (weight_.layout) {
      case CodeLayout::kCompressed: return quant::compressed_row(packed, row, codes);
      case CodeLayout::kGptq: return quant::gptq_row(packed, row, codes);
      case CodeLayout::kAwq: return quant::awq_row(packed, row, codes);
    }
  }

  std::uint8_t zero_of(std::int64_t row, std::int64_t group) const {
    if (weight_.zeros == nullptr) return static_cast<std::uint8_t>(1 << (weight_.bits - 1));
    std::uint8_t stored = 0;
    switch (weight_.layout) {
      case CodeLayout::kCompressed:
        stored = quant::compressed_zero(weight_.zeros, weight_.bits, row, group, weight_.num_groups);
        break;
      case CodeLayout::kGptq: stored = quant::gptq_zero(weight_.zeros, weight_.bits, row, group, num_rows()); break;
      case CodeLayout::kAwq: stored = quant::awq_zero(weight_.zeros, row, group, num_rows()); break;
    }
    return static_cast<std::uint8_t>(stored + weight_.zero_offset);
  }

  void write(const quant::GroupedRow& row, std::vector<float>& values, std::byte* out) const {
    const bool has_runs = weight_.group_of.empty() && weight_.group_size % kBlock == 0;
    if (dtype() == DType::kQ4_0) return quant::write_q4_0(row, out);
    if (dtype() == DType::kQ4_1) return quant::write_q4_1(row, out);
    if (dtype() == DType::kQ8_0 && has_runs && weight_.bits == 8 && weight_.zeros == nullptr) {
      return quant::write_q8_0(row, out);
    }
    quant::write_floats(row, weight_.group_of.empty() ? nullptr : weight_.group_of.data(), values.data());
    write_row(dtype(), values, out);
  }

  GroupedWeight weight_;
};

}  // namespace

float ScaleTable::at(std::int64_t index) const {
  float value = 0.0f;
  info_of(dtype).unpack_row(data + index * info_of(dtype).block_bytes, 1, &value);
  return value;
}

RowReaderPtr float8_rows(const Float8Weight& weight) { return std::make_unique<Float8Rows>(weight); }

RowReaderPtr grouped_rows(GroupedWeight weight) { return std::make_unique<GroupedRows>(std::move(weight)); }

RowReaderPtr mxfp4_rows(std::int64_t num_rows, std::int64_t num_blocks, const std::byte* nibbles,
                        const std::byte* exponents) {
  return std::make_unique<Mxfp4Rows>(num_rows, num_blocks, nibbles, exponents);
}

RowReaderPtr nvfp4_rows(const Nvfp4Weight& weight) { return std::make_unique<Nvfp4Rows>(weight); }

}  // namespace kvasir::io
