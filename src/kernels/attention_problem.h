// A random attention problem over a paged cache, for tests and benchmarks of the attention kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/random_key_basis.h"
#include "kernels/table.h"

namespace kvasir::kernels {

struct AttentionShape {
  std::int32_t num_query_tokens = 1;
  std::int32_t group_size = 1;
  std::int32_t head_dim = 64;
  std::int32_t num_keys = 1;
  std::int32_t num_later_keys = 0;  // behind the queries, which are the last tokens before them
  std::int32_t window = 0;
  std::int32_t ahead = 0;
  float softcap = 0.0f;
  KvFormat format = KvFormat::kF16;      // kF16, kF32 or kQ12
  std::vector<KvFormat> coarser = {};    // of the full blocks in turn; up to kQ12: left alone
  std::vector<std::int32_t> holes = {};  // logical blocks without memory
  std::uint32_t seed = 1;

  std::string to_string() const;
};

// The results of attention over all chunks and the merge.
struct AttentionOutput {
  std::vector<float> out;          // [num_query_tokens, group_size * head_dim]
  std::vector<float> log_sum_exp;  // [rows]
  std::vector<double> scores;      // [rows, num_blocks]: share of attention on each 16-key block
};

// Owns queries, keys, values and the cells that hold them. Every byte of a cell that no key was written to is
// a NaN, and so is everything around the cells.
class AttentionProblem {
 public:
  using Attention = void (*)(const AttentionArgs&);
  using Merge = void (*)(const AttentionMergeArgs&);

  explicit AttentionProblem(const AttentionShape& shape);

  std::int64_t num_rows() const { return std::int64_t{shape_.num_query_tokens} * shape_.group_size; }
  std::int32_t first_position() const { return shape_.num_keys - shape_.num_later_keys - shape_.num_query_tokens; }
  std::int32_t num_blocks() const { return (shape_.num_keys + kTokensPerCell - 1) / kTokensPerCell; }
  std::int32_t num_chunks() const { return (shape_.num_keys + kTokensPerChunk - 1) / kTokensPerChunk; }

  // Query tokens [first_token, first_token + num_tokens) over one chunk; outputs are left to the caller.
  AttentionArgs chunk_args(std::int32_t chunk, std::int32_t first_token, std::int32_t num_tokens) const;
  // Runs every chunk for the given query tokens and merges.
  AttentionOutput run(Attention attention, Merge merge, std::int32_t first_token,
                      std::int32_t num_tokens) const;
  AttentionOutput run(Attention attention, Merge merge) const {
    return run(attention, merge, 0, shape_.num_query_tokens);
  }
  // Dense softmax in float64 over the keys as stored, rotated ones turned back.
  AttentionOutput dense() const;

  bool is_visible(std::int32_t query_position, std::int32_t key_position) const;
  // Overwrites a stored key and value. Requires: its cell is of shape.format.
  void write_key(std::int32_t position, const float* k, const float* v);

 private:
  using Rows = std::vector<std::vector<float>>;  // [num_keys][head_dim]

  kv::KvCellRef& ref_of(std::int32_t block) { return refs_[num_blocks() - 1 - block]; }
  const kv::KvCellRef& ref_of(std::int32_t block) const { return refs_[num_blocks() - 1 - block]; }
  KvFormat format_of(std::int32_t block) const;  // that it is to have
  void make_coarser(std::int32_t block, KvFormat format);
  Rows stored(bool keys) const;
  void attend_densely(std::int64_t row, const Rows& keys, const Rows& values, AttentionOutput& output) const;

  AttentionShape shape_;
  std::int64_t cell_stride_;
  std::unique_ptr<RandomKeyBasis> basis_;  // where some cells have keys in components
  std::vector<float> q_;  // [num_query_tokens, group_size * head_dim]
  AlignedBuffer memory_;
  std::vector<kv::KvCellRef> refs_;  // by block of the pool
  std::vector<BlockId> blocks_;      // by logical block, in an order of their own; kHole in a hole
};

}  // namespace kvasir::kernels
