// Rotary embedding into cells, attention over them, and the merge of its chunks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "backend/cuda/cases/make_cases.h"
#include "backend/cuda/cases/random_floats.h"
#include "backend/cuda/kernels/launchers.h"
#include "kernels/attention_problem.h"

namespace kvasir::cuda {
namespace {

using kernels::AttentionProblem;
using kernels::AttentionShape;
using kernels::KernelTable;
using kernels::KvFormat;
using Floats = std::span<const float>;

constexpr int kCellsPerChunk = kernels::kTokensPerChunk / kernels::kTokensPerCell;

struct RopeShape {
  std::int32_t rows, q_heads, kv_heads, head_dim, rotary_dim;
  bool is_interleaved, has_norms, are_halves;
  std::uint32_t seed;
};

// Each row has cells of its own, at its slot; what lies at other slots stays.
OpCase make_rope_case(const KernelTable& table, const RopeShape& shape) {
  const std::int64_t head_dim = shape.head_dim, cells = shape.rows * shape.kv_heads;
  const std::vector<float> q = random_floats(shape.rows * shape.q_heads * head_dim, 1.0f, shape.seed);
  std::vector<float> k = random_floats(cells * head_dim, 1.0f, shape.seed + 1),
                     v = random_floats(cells * head_dim, 1.0f, shape.seed + 2);
  if (shape.seed % 2 == 1) v[0] = 1e6f;  // beyond F16
  const std::vector<float> q_norm = random_floats(head_dim, 1.0f, shape.seed + 3),
                           k_norm = random_floats(head_dim, 1.0f, shape.seed + 4);
  std::vector<float> angles(static_cast<std::size_t>(shape.rows * shape.rotary_dim));
  std::mt19937 random(shape.seed);
  for (float& each : angles) each = static_cast<float>(random() % 2001) * 1e-3f - 1.0f;
  const KvFormat format = shape.are_halves ? KvFormat::kF16 : KvFormat::kF32;
  const std::int64_t cell_bytes = kv::cell_bytes(format, shape.head_dim);
  const std::vector<std::byte> before(static_cast<std::size_t>(cells * cell_bytes), std::byte{0x3c});
  std::vector<std::byte> memory = before;
  std::vector<kv::KvCellRef> refs;  // of each row's block, by KV head
  std::vector<std::int32_t> block_of, slot_of;
  std::vector<std::uint8_t> are_finite;
  std::vector<float> turned = q;
  const auto style = shape.is_interleaved ? kernels::RopeStyle::kInterleaved : kernels::RopeStyle::kHalves;
  for (std::int32_t row = 0; row < shape.rows; ++row) {
    const float* cosines = angles.data() + row * shape.rotary_dim;
    block_of.push_back(row);
    slot_of.push_back(static_cast<std::int32_t>(random() % kernels::kTokensPerCell));
    const auto turn = [&](float* head, const std::vector<float>& norm) {
      if (shape.has_norms) table.rms_norm(head, norm.data(), 1e-6f, head_dim, head);
      table.rope(head, cosines, cosines + shape.rotary_dim / 2, shape.rotary_dim, style);
    };
    for (std::int32_t h = 0; h < shape.q_heads; ++h)
      turn(turned.data() + (row * shape.q_heads + h) * head_dim, q_norm);
    for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
      const std::int64_t i = row * shape.kv_heads + h;
      refs.emplace_back((cells - 1 - i) * cell_bytes, format);
      std::vector<float> key(k.begin() + i * head_dim, k.begin() + (i + 1) * head_dim);
      turn(key.data(), k_norm);
      are_finite.push_back(table.write_kv({.k = key.data(),
                                           .v = v.data() + i * head_dim,
                                           .head_dim = shape.head_dim,
                                           .slot = slot_of.back(),
                                           .format = format,
                                           .cell = memory.data() + refs.back().offset()}));
    }
  }
  OpCase result{.op = "rope_and_store",
                .name = "rows " + std::to_string(shape.rows) + " head_dim " + std::to_string(shape.head_dim) +
                        " seed " + std::to_string(shape.seed),
                .numbers = {shape.rows, shape.q_heads, shape.kv_heads, shape.head_dim, shape.rotary_dim,
                            shape.is_interleaved, shape.are_halves}};
  result.add_in_out(ArrayKind::kFloats, Floats(q), Floats(turned));
  result.add_input(Floats(k));
  result.add_input(Floats(v));
  result.add_input(Floats(angles));
  result.add_input(shape.has_norms ? Floats(q_norm) : Floats());
  result.add_input(shape.has_norms ? Floats(k_norm) : Floats());
  result.add_in_out(ArrayKind::kBytes, std::span<const std::byte>(before),
                    std::span<const std::byte>(memory));
  result.add_input(std::span<const std::int32_t>(block_of));
  result.add_input(std::span<const std::int32_t>(slot_of));
  result.add_input(std::span<const kv::KvCellRef>(refs));
  result.add_output(ArrayKind::kBytes, std::span<const std::uint8_t>(are_finite));
  return result;
}

// Tasks of at most kMaxAttentionRows rows; partial results lie by chunk, then row.
std::vector<AttentionTask> tasks_of(const AttentionProblem& problem, const AttentionShape& shape) {
  std::vector<AttentionTask> tasks;
  const std::int32_t tokens_of_task = std::max(kMaxAttentionRows / shape.group_size, 1);
  for (std::int32_t chunk = 0; chunk < problem.num_chunks(); ++chunk) {
    for (std::int32_t token = 0; token < shape.num_query_tokens; token += tokens_of_task) {
      const std::int32_t begin = chunk * kernels::kTokensPerChunk;
      tasks.push_back({.first_row = token,
                       .num_tokens = std::min(tokens_of_task, shape.num_query_tokens - token),
                       .first_position = problem.first_position() + token,
                       .kv_head = 0,
                       .key_begin = begin,
                       .key_end = std::min(begin + kernels::kTokensPerChunk, shape.num_keys),
                       .first_block = 0,
                       .first_partial = static_cast<std::int32_t>(chunk * problem.num_rows()) +
                                        token * shape.group_size});
    }
  }
  return tasks;
}

OpCase make_attention_case(const KernelTable& table, const AttentionShape& shape) {
  const AttentionProblem problem(shape);
  const std::int64_t rows = problem.num_rows(), partials = rows * problem.num_chunks();
  std::vector<float> out(static_cast<std::size_t>(partials * shape.head_dim)),
      max(static_cast<std::size_t>(partials)), sum(max.size());
  std::vector<float> block_sums(static_cast<std::size_t>(partials * kCellsPerChunk));
  kernels::AttentionArgs args;
  for (std::int32_t chunk = 0; chunk < problem.num_chunks(); ++chunk) {
    args = problem.chunk_args(chunk, 0, shape.num_query_tokens);
    args.out = out.data() + chunk * rows * shape.head_dim;
    args.max = max.data() + chunk * rows;
    args.sum = sum.data() + chunk * rows;
    args.block_sums = block_sums.data() + chunk * rows * kCellsPerChunk;
    table.attention(args);
  }
  const std::vector<AttentionTask> tasks = tasks_of(problem, shape);
  std::int64_t memory_end = 0;
  for (std::int32_t b = 0; b < problem.num_blocks(); ++b) {
    memory_end = std::max(memory_end, args.keys.cells.refs[b].offset() +
                                          kv::cell_bytes(args.keys.cells.refs[b].format(), shape.head_dim));
  }
  OpCase result{.op = "attention",
                .name = shape.to_string(),
                .numbers = {static_cast<std::int64_t>(tasks.size()), args.q_stride, shape.group_size,
                            shape.head_dim, shape.window, shape.ahead,
                            static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(args.scale)),
                            static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(args.softcap))}};
  const auto blocks = static_cast<std::size_t>(problem.num_blocks());
  result.add_input(std::span<const AttentionTask>(tasks));
  result.add_input(Floats(args.q, static_cast<std::size_t>(shape.num_query_tokens * args.q_stride)));
  result.add_input(std::span(args.keys.cells.blocks, blocks));
  result.add_input(std::span(args.keys.cells.refs, blocks));
  result.add_input(std::span(args.keys.cells.memory, static_cast<std::size_t>(memory_end)));
  for (const auto& each : {Floats(out), Floats(max), Floats(sum), Floats(block_sums)})
    result.add_output(ArrayKind::kFloats, each);
  return result;
}

AttentionShape random_shape(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  AttentionShape shape;
  shape.seed = seed;
  shape.group_size = pick({1, 3, 4, 8, 16});
  shape.head_dim = pick({64, 80, 22, 128});
  shape.num_keys = 1 + static_cast<int>(random() % static_cast<unsigned>(pick({20, 200, 1100})));
  shape.num_query_tokens = 1 + static_cast<int>(random() % static_cast<unsigned>(
                                                               std::min(shape.num_keys, pick({1, 4, 9}))));
  shape.window = pick({0, 0, 1, 16, 300});
  if (seed % 3 == 0) {
    shape.ahead = pick({1, 15, 1 << 29});
    shape.num_later_keys = static_cast<int>(random() % static_cast<unsigned>(shape.num_keys));
    shape.num_query_tokens = std::min(shape.num_query_tokens,
                                      std::max(shape.num_keys - shape.num_later_keys, 1));
    shape.num_later_keys = std::min(shape.num_later_keys, shape.num_keys - shape.num_query_tokens);
  }
  shape.softcap = seed % 4 == 1 ? 20.0f : 0.0f;
  shape.format = seed % 5 == 2 ? KvFormat::kF32 : KvFormat::kF16;
  if (shape.num_keys > 100)
    shape.holes = {1, static_cast<int>(random() % static_cast<unsigned>(shape.num_keys / 16))};
  return shape;
}

OpCase make_merge_case(const KernelTable& table, std::int32_t chunks, std::int32_t rows,
                       std::int32_t head_dim, bool has_sinks, std::uint32_t seed) {
  const std::int64_t partials = std::int64_t{chunks} * rows;
  const std::vector<float> out = random_floats(partials * head_dim, 1.0f, seed);
  std::vector<float> max = random_floats(partials, 3.0f, seed + 1),
                     sum = random_floats(partials, 5.0f, seed + 2);
  for (float& each : sum) each = std::fabs(each) + 1.0f;
  if (seed % 2 == 1) {  // a chunk without a visible key
    sum[0] = 0.0f;
    max[0] = -std::numeric_limits<float>::infinity();
  }
  const std::vector<float> sinks = random_floats(rows, 2.0f, seed + 3);
  std::vector<float> merged(static_cast<std::size_t>(rows * head_dim)),
      log_sum_exp(static_cast<std::size_t>(rows));
  table.attention_merge({.partial_out = out.data(),
                         .partial_max = max.data(),
                         .partial_sum = sum.data(),
                         .num_chunks = chunks,
                         .num_rows = rows,
                         .group_size = rows,
                         .head_dim = head_dim,
                         .out = merged.data(),
                         .out_stride = std::int64_t{rows} * head_dim,
                         .log_sum_exp = log_sum_exp.data(),
                         .sinks = has_sinks ? sinks.data() : nullptr});
  std::vector<std::int32_t> first, stride(static_cast<std::size_t>(rows), rows),
      counts(static_cast<std::size_t>(rows), chunks);
  for (std::int32_t r = 0; r < rows; ++r) first.push_back(r);
  OpCase result{.op = "attention_merge",
                .name = "chunks " + std::to_string(chunks) + " rows " + std::to_string(rows) +
                        (has_sinks ? " sinks" : ""),
                .numbers = {rows, head_dim}};
  for (const auto& each : {Floats(out), Floats(max), Floats(sum)}) result.add_input(each);
  for (const auto* each : {&first, &stride, &counts}) result.add_input(std::span<const std::int32_t>(*each));
  result.add_input(has_sinks ? Floats(sinks) : Floats());
  result.add_output(ArrayKind::kFloats, Floats(merged));
  return result;
}

}  // namespace

std::vector<OpCase> make_rope_cases(const KernelTable& table) {
  return {make_rope_case(table, {3, 4, 2, 64, 64, false, false, true, 2}),
          make_rope_case(table, {2, 3, 1, 128, 64, true, true, true, 1}),
          make_rope_case(table, {2, 9, 3, 80, 80, false, true, false, 4}),
          make_rope_case(table, {1, 5, 5, 40, 20, true, false, true, 6})};
}

std::vector<OpCase> make_attention_cases(const KernelTable& table) {
  std::vector<OpCase> cases;
  for (std::uint32_t seed = 0; seed < 12; ++seed)
    cases.push_back(make_attention_case(table, random_shape(seed)));
  return cases;
}

std::vector<OpCase> make_merge_cases(const KernelTable& table) {
  return {make_merge_case(table, 1, 3, 64, false, 1), make_merge_case(table, 1, 3, 80, true, 2),
          make_merge_case(table, 5, 4, 128, false, 3), make_merge_case(table, 3, 2, 64, true, 5)};
}

}  // namespace kvasir::cuda
