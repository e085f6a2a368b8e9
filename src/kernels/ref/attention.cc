// Attention as the textbook has it: all scores of a row, their maximum, their weights, the weighted sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ref/kernels.h"
#include "kernels/ref/key_components.h"
#include "kernels/ref/kv_cell.h"

namespace kvasir::kernels::ref {
namespace {

constexpr float kNoKey = -std::numeric_limits<float>::infinity();
constexpr int kBlocksPerChunk = kTokensPerChunk / kTokensPerCell;

bool is_visible(const AttentionArgs& args, std::int32_t query_position, std::int32_t key_position) {
  if (key_position > query_position + args.ahead) return false;
  if (args.window > 0 && key_position <= query_position - args.window) return false;
  return args.keys.cells.find(key_position / kTokensPerCell).data != nullptr;
}

// One query row: as it is, and as rotated keys want it.
struct Query {
  std::vector<float> plain, rotated;

  Query(const AttentionArgs& args, std::int64_t row) : plain(args.head_dim) {
    const float* q = args.q + row / args.group_size * args.q_stride + (row % args.group_size) * args.head_dim;
    for (std::int32_t d = 0; d < args.head_dim; ++d) plain[d] = q[d] * args.scale;
    rotated = plain;
    if (args.head_dim % kv::kChannelsPerScale == 0) rotate(rotated);
  }
};

float score(const AttentionArgs& args, const Query& query, std::int32_t position) {
  const kv::KvCell cell = args.keys.cells.find(position / kTokensPerCell);
  const kv::KvCode code = kv::codes_of(cell.format).keys;
  const std::vector<float>& q = kv::is_rotated(code) ? query.rotated : query.plain;
  float dot = 0.0f;
  if (code == kv::KvCode::kComponents) {
    const std::vector<float> key = component_key(*args.basis, cell.data, args.head_dim, position / kTokensPerCell, position % kTokensPerCell);
    for (std::int32_t d = 0; d < args.head_dim; ++d) dot = std::fma(q[d], key[d], dot);
  } else {
    for (std::int32_t d = 0; d < args.head_dim; ++d) {
      dot = std::fma(q[d], key_number(code, cell.data, args.head_dim, position % kTokensPerCell, d), dot);
    }
  }
  return args.softcap > 0.0f ? args.softcap * std::tanh(dot / args.softcap) : dot;
}

// out += weight * value, in the basis of the value.
void add_value(const AttentionArgs& args, std::int32_t position, float weight, float* plain,
               std::vector<float>& rotated) {
  const kv::KvCell cell = args.keys.cells.find(position / kTokensPerCell);
  const kv::KvCode code = kv::codes_of(cell.format).values;
  const std::byte* half = cell.data + kv::key_bytes(cell.format, args.head_dim);
  float* out = kv::is_rotated(code) ? rotated.data() : plain;
  for (std::int32_t d = 0; d < args.head_dim; ++d) {
    out[d] = std::fma(weight, value_number(code, half, args.head_dim, position % kTokensPerCell, d), out[d]);
  }
}

void attend_row(const AttentionArgs& args, std::int64_t row) {
  const std::int64_t token = row / args.group_size;
  const std::int32_t position = args.first_position + static_cast<std::int32_t>(token);
  const Query query(args, row);
  float* out = args.out + row * args.head_dim;
  float* block_sums = args.block_sums == nullptr ? nullptr : args.block_sums + row * kBlocksPerChunk;

  float scores[kTokensPerChunk];
  float max = kNoKey;
  for (std::int32_t key = args.keys.begin; key < args.keys.end; ++key) {
    if (!is_visible(args, position, key)) continue;
    float& s = scores[key - args.keys.begin];
    s = score(args, query, key);
    max = std::fmax(max, s);
  }
  // fmax and fmin would drop a query that is no number.
  const bool is_finite = std::ranges::all_of(query.plain, [](float x) { return std::isfinite(x); });
  for (std::int32_t d = 0; d < args.head_dim; ++d) {
    out[d] = is_finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  std::vector<float> rotated(args.head_dim);
  if (block_sums != nullptr) {
    for (int b = 0; b < kBlocksPerChunk; ++b) block_sums[b] = 0.0f;
  }
  float sum = 0.0f;
  for (std::int32_t key = args.keys.begin; key < args.keys.end; ++key) {
    if (!is_visible(args, position, key)) continue;
    const float weight = std::exp(scores[key - args.keys.begin] - max);
    if (block_sums != nullptr) block_sums[(key - args.keys.begin) / kTokensPerCell] += weight;
    sum += weight;
    add_value(args, key, weight, out, rotated);
  }
  if (args.head_dim % kv::kChannelsPerScale == 0) {
    rotate(rotated);
    for (std::int32_t d = 0; d < args.head_dim; ++d) out[d] += rotated[d];
  }
  args.max[row] = max;
  args.sum[row] = sum;
}

}  // namespace

void attention(const AttentionArgs& args) {
  const std::int64_t num_rows = static_cast<std::int64_t>(args.num_query_tokens) * args.group_size;
  for (std::int64_t row = 0; row < num_rows; ++row) attend_row(args, row);
}

void attention_merge(const AttentionMergeArgs& args) {
  for (std::int64_t row = 0; row < args.num_rows; ++row) {
    const auto counts = [&](std::int64_t c) { return args.partial_sum[c * args.num_rows + row] != 0.0f; };
    const float sink = args.sinks == nullptr ? kNoKey : args.sinks[row % args.group_size];
    float max = sink;
    for (std::int64_t c = 0; c < args.num_chunks; ++c) {
      if (counts(c)) max = std::fmax(max, args.partial_max[c * args.num_rows + row]);
    }

    float* out = args.out + (row / args.group_size) * args.out_stride +
                 (row % args.group_size) * args.head_dim;
    for (std::int32_t d = 0; d < args.head_dim; ++d) out[d] = 0.0f;
    float sum = 0.0f;
    for (std::int64_t c = 0; c < args.num_chunks; ++c) {
      const std::int64_t index = c * args.num_rows + row;
      if (!counts(c)) continue;
      const float weight = std::exp(args.partial_max[index] - max);
      sum = std::fma(weight, args.partial_sum[index], sum);
      const float* partial = args.partial_out + index * args.head_dim;
      for (std::int32_t d = 0; d < args.head_dim; ++d) out[d] = std::fma(weight, partial[d], out[d]);
    }
    if (args.sinks != nullptr) sum += std::exp(sink - max);
    for (std::int32_t d = 0; d < args.head_dim; ++d) out[d] = sum == 0.0f ? 0.0f : out[d] / sum;
    if (args.log_sum_exp != nullptr) args.log_sum_exp[row] = max + std::log(sum);
  }
}

}  // namespace kvasir::kernels::ref
