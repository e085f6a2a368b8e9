#include "kernels/attention_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/check.h"
#include "kernels/portable_normal.h"
#include "kernels/ref/kv_cell.h"
#include "kernels/ref/kernels.h"
#include "kernels/table.h"

namespace kvasir::kernels {
namespace {

constexpr int kBlocksPerChunk = kTokensPerChunk / kTokensPerCell;
constexpr std::int64_t kPaddingBytes = 64;  // NaN before and after each cell

}  // namespace

std::string AttentionShape::to_string() const {
  std::string text = fmt::format(
      "tokens {} group {} head_dim {} keys {} (later {}) window {} ahead {} softcap {} {} seed {} holes",
      num_query_tokens, group_size, head_dim, num_keys, num_later_keys, window, ahead, softcap,
      kv::name_of(format), seed);
  for (std::int32_t hole : holes) text += ' ' + std::to_string(hole);
  text += " coarser";
  for (KvFormat each : coarser) text.append(" ").append(kv::name_of(each));
  return text;
}

AttentionProblem::AttentionProblem(const AttentionShape& shape)
    : shape_(shape),
      cell_stride_(kv::cell_bytes(KvFormat::kF32, shape.head_dim) + 2 * kPaddingBytes),
      q_(static_cast<std::size_t>(num_rows() * shape.head_dim)),
      memory_(AlignedBuffer::allocate(num_blocks() * cell_stride_).value()),
      refs_(static_cast<std::size_t>(num_blocks())),
      blocks_(static_cast<std::size_t>(num_blocks())) {
  if (std::ranges::count(shape.coarser, KvFormat::kK2pV2) > 0 && kv::supports(KvFormat::kK2pV2, shape.head_dim)) {
    basis_ = std::make_unique<RandomKeyBasis>(shape.head_dim, num_blocks(), 1.0f, shape.seed);
  }
  // 0xff everywhere is a NaN in every format.
  std::memset(memory_.data(), 0xff, static_cast<std::size_t>(num_blocks() * cell_stride_));
  std::mt19937 random(shape.seed);
  const PortableNormal normal;
  for (float& value : q_) value = normal(random);
  for (std::int32_t b = 0; b < num_blocks(); ++b) {
    blocks_[b] = BlockId{num_blocks() - 1 - b};
    ref_of(b) = {b * cell_stride_ + kPaddingBytes, shape.format};
  }
  std::vector<float> k(shape.head_dim), v(shape.head_dim);
  for (std::int32_t position = 0; position < shape.num_keys; ++position) {
    for (float& value : k) value = normal(random);
    for (float& value : v) value = normal(random);
    write_key(position, k.data(), v.data());
  }
  for (std::int32_t b = 0; b < shape.num_keys / kTokensPerCell; ++b) make_coarser(b, format_of(b));
  for (std::int32_t hole : shape.holes) blocks_[hole] = kHole;
}

KvFormat AttentionProblem::format_of(std::int32_t block) const {
  return shape_.coarser.empty() ? shape_.format : shape_.coarser[block % shape_.coarser.size()];
}

void AttentionProblem::make_coarser(std::int32_t block, KvFormat format) {
  if (format < KvFormat::kQ8 || !kv::supports(format, shape_.head_dim)) return;
  std::byte* cell = memory_.data() + ref_of(block).offset();
  const std::vector<std::byte> exact(cell, cell + kv::cell_bytes(shape_.format, shape_.head_dim));
  std::memset(cell, 0xff, exact.size());
  ref::convert_cell({.head_dim = shape_.head_dim,
                     .from = shape_.format,
                     .to = format,
                     .source = exact.data(),
                     .target = cell,
                     .basis = basis_ == nullptr ? nullptr : &basis_->basis(),
                     .block = block});
  ref_of(block) = {ref_of(block).offset(), format};
}

void AttentionProblem::write_key(std::int32_t position, const float* k, const float* v) {
  const kv::KvCellRef ref = ref_of(position / kTokensPerCell);
  CHECK(ref.format() == shape_.format);
  ref::write_kv({.k = k,
                 .v = v,
                 .head_dim = shape_.head_dim,
                 .slot = position % kTokensPerCell,
                 .format = shape_.format,
                 .cell = memory_.data() + ref.offset()});
}

AttentionArgs AttentionProblem::chunk_args(std::int32_t chunk, std::int32_t first_token,
                                           std::int32_t num_tokens) const {
  const std::int64_t q_stride = std::int64_t{shape_.group_size} * shape_.head_dim;
  const kv::KvCellMap cells = {.blocks = blocks_.data(), .refs = refs_.data(), .memory = memory_.data()};
  const std::int32_t key_end = std::min((chunk + 1) * kTokensPerChunk, shape_.num_keys);
  return {.q = q_.data() + first_token * q_stride,
          .q_stride = q_stride,
          .num_query_tokens = num_tokens,
          .group_size = shape_.group_size,
          .head_dim = shape_.head_dim,
          .first_position = first_position() + first_token,
          .window = shape_.window,
          .ahead = shape_.ahead,
          .keys = {.begin = chunk * kTokensPerChunk, .end = key_end, .cells = cells},
          .is_asked_for = chunk > 0,
          .next_keys = {.begin = key_end,
                        .end = std::min(key_end + kTokensPerChunk, shape_.num_keys),
                        .cells = cells},
          .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)),
          .softcap = shape_.softcap,
          .basis = basis_ == nullptr ? nullptr : &basis_->basis()};
}

AttentionOutput AttentionProblem::run(Attention attention, Merge merge, std::int32_t first_token,
                                      std::int32_t num_tokens) const {
  const std::int64_t rows = std::int64_t{num_tokens} * shape_.group_size;
  const std::int64_t chunks = num_chunks();
  const float poison = std::numeric_limits<float>::quiet_NaN();  // every output must be written
  std::vector<float> out(chunks * rows * shape_.head_dim, poison), max(chunks * rows, poison);
  std::vector<float> sum(chunks * rows, poison), block_sums(chunks * rows * kBlocksPerChunk, poison);
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
    AttentionArgs args = chunk_args(chunk, first_token, num_tokens);
    args.out = out.data() + chunk * rows * shape_.head_dim;
    args.max = max.data() + chunk * rows;
    args.sum = sum.data() + chunk * rows;
    args.block_sums = block_sums.data() + chunk * rows * kBlocksPerChunk;
    attention(args);
  }
  AttentionOutput output{std::vector<float>(rows * shape_.head_dim, poison), std::vector<float>(rows, poison),
                         std::vector<double>(rows * num_blocks())};
  merge({.partial_out = out.data(),
         .partial_max = max.data(),
         .partial_sum = sum.data(),
         .num_chunks = static_cast<std::int32_t>(chunks),
         .num_rows = static_cast<std::int32_t>(rows),
         .group_size = shape_.group_size,
         .head_dim = shape_.head_dim,
         .out = output.out.data(),
         .out_stride = std::int64_t{shape_.group_size} * shape_.head_dim,
         .log_sum_exp = output.log_sum_exp.data()});
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int32_t b = 0; b < num_blocks(); ++b) {
      const std::int64_t index = b / kBlocksPerChunk * rows + row;
      const float of_block = block_sums[index * kBlocksPerChunk + b % kBlocksPerChunk];
      const bool any = of_block != 0.0f;
      const double weight = any ? std::exp(static_cast<double>(max[index]) - output.log_sum_exp[row]) : 0.0;
      output.scores[row * num_blocks() + b] = weight * of_block;
    }
  }
  return output;
}

bool AttentionProblem::is_visible(std::int32_t query_position, std::int32_t key_position) const {
  if (blocks_[key_position / kTokensPerCell] == kHole || key_position > query_position + shape_.ahead) return false;
  return shape_.window == 0 || key_position > query_position - shape_.window;
}

AttentionProblem::Rows AttentionProblem::stored(bool keys) const {
  Rows rows;
  for (std::int32_t position = 0; position < shape_.num_keys; ++position) {
    const kv::KvCellRef cell = ref_of(position / kTokensPerCell);
    const kv::KvCodes codes = kv::codes_of(cell.format());
    const std::byte* half = memory_.data() + cell.offset() +
                            (keys ? 0 : kv::key_bytes(cell.format(), shape_.head_dim));
    if (keys) {
      rows.push_back(ref::key_of({cell.format(), shape_.head_dim, half, basis_ == nullptr ? nullptr : &basis_->basis(), position / kTokensPerCell},
                                 position % kTokensPerCell));
      continue;
    }
    std::vector<float>& row = rows.emplace_back(shape_.head_dim);
    for (std::int32_t d = 0; d < shape_.head_dim; ++d) {
      row[d] = ref::value_number(codes.values, half, shape_.head_dim, position % kTokensPerCell, d);
    }
    if (kv::is_rotated(codes.values)) ref::rotate(row);
  }
  return rows;
}

void AttentionProblem::attend_densely(std::int64_t row, const Rows& keys, const Rows& values,
                                      AttentionOutput& output) const {
  const AttentionArgs args = chunk_args(0, 0, shape_.num_query_tokens);
  const std::int32_t position = args.first_position + static_cast<std::int32_t>(row / shape_.group_size);
  const std::int64_t head_dim = shape_.head_dim;
  std::vector<double> weights(shape_.num_keys);
  double sum = 0.0;
  for (std::int32_t key = 0; key < shape_.num_keys; ++key) {
    if (!is_visible(position, key)) continue;
    double score = 0.0;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      score += static_cast<double>(q_[row * head_dim + d]) * args.scale * keys[key][d];
    }
    if (shape_.softcap > 0.0f) score = shape_.softcap * std::tanh(score / shape_.softcap);
    weights[key] = std::exp(score);
    sum += weights[key];
  }
  std::vector<double> out(head_dim);
  for (std::int32_t key = 0; key < shape_.num_keys; ++key) {
    if (weights[key] == 0.0) continue;
    const double share = weights[key] / sum;
    output.scores[row * num_blocks() + key / kTokensPerCell] += share;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      out[d] += share * values[key][d];
    }
  }
  for (std::int64_t d = 0; d < head_dim; ++d) output.out[row * head_dim + d] = static_cast<float>(out[d]);
  output.log_sum_exp[row] = static_cast<float>(std::log(sum));
}

AttentionOutput AttentionProblem::dense() const {
  AttentionOutput output{std::vector<float>(num_rows() * shape_.head_dim), std::vector<float>(num_rows()),
                         std::vector<double>(num_rows() * num_blocks())};
  const Rows keys = stored(true), values = stored(false);
  for (std::int64_t row = 0; row < num_rows(); ++row) attend_densely(row, keys, values, output);
  return output;
}

}  // namespace kvasir::kernels
