// The contract between partitioning code and kernels: one table of raw functions per instruction set.
//
// Kernels take raw pointers, never allocate, throw, log or lock. Each output value's order of summation is a
// function of the shape alone, never of how many tokens or rows a call covers, so any split over threads,
// batches or chunks gives the same bits. Quantised matmuls are bit-equal on every ISA: the integer dot of a
// block is exact, and blocks are added in order with one fused multiply-add each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/cells/cell.h"
#include "kv/cells/key_basis.h"
#include "quant/dtype.h"

namespace kvasir::kernels {

inline constexpr int kRowsPerGroup = 16;             // output rows packed together: one row per lane
inline constexpr int kActivationBlock = 32;          // consecutive inputs that share one activation scale
inline constexpr int kTokensPerActivationTile = 16;  // quantised rows that lie together
// Row groups that a matmul works on at once where it can: of this many tokens or more in the exact mode, of
// any in the fast mode.
inline constexpr int kLeastPanelTokens = 64;
inline constexpr int kGroupsPerPanel = 3;
inline constexpr int kGroupsPerW8a8Panel = 4;
inline constexpr int kTokensPerCell = kv::kTokensPerBlock;
inline constexpr int kTokensPerTile = 64;    // keys that share one running maximum: four cells
inline constexpr int kTokensPerChunk = 512;  // keys of one attention task; partial results merge in order
inline constexpr int kLogitsPerTile = 64;    // that share one entry of tile_maxima
inline constexpr int kMaxHeadDim = 512;      // of attention; its scratch lives on the stack

// Rows [group_begin, group_end) * 16 of out = activations x W^T, for every token of the batch.
struct MatmulArgs {
  const void* weights = nullptr;      // packed groups, packed_group_bytes(k) each
  const void* low_weights = nullptr;  // of nibble planes: the low one
  std::int64_t k = 0;                 // inputs
  std::int64_t num_rows = 0;          // outputs; lanes of the last group beyond it are not stored
  std::int64_t group_begin = 0;
  std::int64_t group_end = 0;
  const float* x = nullptr;         // [num_tokens, k] float activations: where FormatKernels::reads_floats
  const void* quantized = nullptr;  // activation_bytes(k, num_tokens): elsewhere
  std::int32_t num_tokens = 0;
  float* out = nullptr;         // [num_tokens, out_stride]
  std::int64_t out_stride = 0;  // in floats
  bool accumulate = false;      // out += instead of out = (the residual stream)
};

struct FormatKernels {
  bool reads_floats;  // matmul reads x instead of quantized
  // 64-byte aligned and padded; every group of a matrix has the same size.
  std::int64_t (*packed_group_bytes)(std::int64_t k);
  // Packs up to 16 consecutive rows in file layout (row_bytes apart); missing rows become zeros.
  void (*pack_group)(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* packed);
  void (*matmul)(const MatmulArgs& args);
};

// Bounds on the logits of one token, from the high nibble plane of a matrix and little of the low one.
struct BoundArgs {
  const void* weights = nullptr;  // as of MatmulArgs
  const void* low_weights = nullptr;
  std::int64_t k = 0;
  std::int64_t num_rows = 0;
  std::int64_t group_begin = 0;
  std::int64_t group_end = 0;
  const void* quantized = nullptr;  // as of MatmulArgs
  std::int32_t token = 0;           // of num_tokens
  std::int32_t num_tokens = 0;
  const void* inputs = nullptr;  // of the token: what measure_inputs wrote
  // [group_end - group_begin, kRowsPerGroup]: where both are finite, the matmul's logit of a row is within
  // slack of estimate.
  float* estimate = nullptr;
  float* slack = nullptr;
  // [group_end - group_begin]: no logit of the group is above `upper`, and one is not below `lower`. Where
  // nothing is known upper is infinite, lower -infinite.
  float* upper = nullptr;
  float* lower = nullptr;
};

// Kernels of a Q8_0 matrix that lies in two planes of nibbles (nibble_planes.h).
struct NibblePlaneKernels {
  // 64-byte aligned and padded, as FormatKernels::packed_group_bytes.
  std::int64_t (*high_group_bytes)(std::int64_t k);
  std::int64_t (*low_group_bytes)(std::int64_t k);
  // As FormatKernels::pack_group.
  void (*pack_group)(const void* rows, std::int64_t row_bytes, int num_rows, std::int64_t k, void* high,
                     void* low);
  // Reads both planes; the bits are those of the other packing.
  void (*matmul)(const MatmulArgs& args);
  // The bounds' view of a quantised row, a BoundInputs in input_bytes(k).
  std::int64_t (*input_bytes)(std::int64_t k);
  void (*measure_inputs)(const void* quantized, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                         void* inputs);
  void (*bound)(const BoundArgs& args);  // reads the high plane; writes all four outputs
  // Asks for what refine will read.
  void (*prefetch_refine)(const BoundArgs& args);
  void (*refine)(const BoundArgs& args);  // after bound: reads little of the low plane and narrows them
  std::int64_t refine_bytes;              // that refine reads of a group's low plane, at most
};

using kv::KvFormat;

// Keys [begin, end) of one sequence and one KV head, at most one chunk.
struct KeyChunk {
  std::int32_t begin = 0;  // multiple of kTokensPerChunk
  std::int32_t end = 0;
  kv::KvCellMap cells;  // of the whole sequence
};

// Attention of query rows of one sequence and one KV head over `keys`.
// Row r is query token r / group_size; its absolute position is first_position + r / group_size; it sees keys
// with position <= its own + ahead and, when window > 0, position > its own - window. Keys are absolute positions:
// key t lies in cell t / 16, in whatever format that has; a cell that is gone is skipped. V of keys a row
// does not see is never read into its sum, so another sequence's leftovers cannot reach it.
struct AttentionArgs {
  const float* q = nullptr;  // [num_query_tokens, q_stride], group_size heads of head_dim each
  std::int64_t q_stride = 0;
  std::int32_t num_query_tokens = 0;
  std::int32_t group_size = 0;  // query heads per KV head
  std::int32_t head_dim = 0;    // at most kMaxHeadDim
  std::int32_t first_position = 0;
  std::int32_t window = 0;  // 0: no window
  std::int32_t ahead = 0;   // keys behind its own that a row sees
  KeyChunk keys;
  // Whether the call before, on the same core, had these keys for its next ones: then they are asked for.
  bool is_asked_for = false;
  KeyChunk next_keys;    // what the caller will most likely attend to next, asked for ahead of time
  float scale = 1.0f;    // multiplies q.k
  float softcap = 0.0f;  // > 0: s = cap * tanh(s / cap)
  const kv::KeyBasis* basis = nullptr;  // of this KV head; null: no cell has keys in components
  // Partial result per row: out is sum(p v) relative to max, not yet divided by sum; NaN of a query that is.
  // A row that saw no key has sum 0, out 0 and -inf for max.
  float* out = nullptr;  // [rows, head_dim], rows = num_query_tokens * group_size
  float* max = nullptr;  // [rows]
  float* sum = nullptr;  // [rows]
  // When set: per row and 16-key block of the chunk, exp-sum relative to the row's final `max` of this chunk.
  float* block_sums = nullptr;  // [rows, kTokensPerChunk / kTokensPerCell] or null
};

// Merges the chunks of each row in order and divides: out[row] = sum_c w_c out_c / sum_c w_c sum_c.
struct AttentionMergeArgs {
  const float* partial_out = nullptr;  // [num_chunks, num_rows, head_dim]
  const float* partial_max = nullptr;  // [num_chunks, num_rows]
  const float* partial_sum = nullptr;  // [num_chunks, num_rows]
  std::int32_t num_chunks = 0;
  std::int32_t num_rows = 0;  // num_query_tokens * group_size
  std::int32_t group_size = 0;
  std::int32_t head_dim = 0;
  float* out = nullptr;  // row r goes to out + (r / group_size) * out_stride + (r % group_size) * head_dim
  std::int64_t out_stride = 0;
  float* log_sum_exp = nullptr;  // [num_rows] or null: log of the whole softmax denominator
  // [group_size] or null, by query head: one more score in the softmax, which has no value (Xiao et al. 2023,
  // "Efficient streaming language models with attention sinks"; as gpt-oss learns it).
  const float* sinks = nullptr;
};

// Rounds K and V of one token and one KV head into its slot of a cell.
struct KvWriteArgs {
  const float* k = nullptr;  // [head_dim], after RoPE
  const float* v = nullptr;  // [head_dim]
  std::int32_t head_dim = 0;
  std::int32_t slot = 0;             // 0..15 inside the block
  KvFormat format = KvFormat::kF16;  // or kF32, kQ12
  std::byte* cell = nullptr;
};

// Writes a cell anew in a coarser format. Requires: kv::supports(to, head_dim), and all 16 tokens are there.
struct KvConvertArgs {
  std::int32_t head_dim = 0;
  KvFormat from = KvFormat::kF16;
  KvFormat to = KvFormat::kQ8;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;  // does not overlap
  const kv::KeyBasis* basis = nullptr;  // of keys that become components
  std::int32_t block = 0;               // the cell's place in its sequence, likewise
};

// Measures a cell whose 16 tokens are all there. A rotated half is measured as it was before: of a cell that
// was computed elsewhere, the sum of unit keys goes on with those of other formats.
struct CellMeasureArgs {
  std::int32_t head_dim = 0;
  KvFormat format = KvFormat::kF16;
  const std::byte* cell = nullptr;
  const kv::KeyBasis* basis = nullptr;  // of keys in components
  std::int32_t block = 0;               // the cell's place in its sequence, likewise
  // Where set, [head_dim]: the unit keys are added to it, and distinctness is the mean over the tokens of
  // -cos(key, key_sum) afterwards.
  float* key_sum = nullptr;
  float* distinctness = nullptr;
  float* value_key_ratio = nullptr;  // where set: the mean over the tokens of |value| / |key|, 0 for a key 0
  float* longest_value = nullptr;    // where set: the greatest |value| of the tokens
};

enum class RopeStyle : std::uint8_t {
  kInterleaved,  // pairs (2i, 2i+1): llama weights as GGUF stores them
  kHalves,       // pairs (i, i + rotary_dim/2): NeoX, Qwen, Gemma
};

struct KernelTable {
  const char* isa;                    // "ref", "avx2", "neon"
  FormatKernels formats[kNumDTypes];  // by DType
  // The same weights in the fast mode (w8a8.h): block formats requantised to bytes with a scale per 256
  // inputs. Their matmul reads what quantize_row_w8a8 writes.
  FormatKernels w8a8_formats[kNumDTypes];
  NibblePlaneKernels nibble_planes;
  FormatKernels byte_columns;  // of adapters; packs rows of floats (byte_columns.h)

  // Bytes of num_tokens quantised rows of k inputs (k a multiple of 32), 64-byte aligned. Also where the rows
  // from token num_tokens begin when that is a multiple of kTokensPerActivationTile (activation.h): a matmul
  // may begin there, and up to there.
  std::int64_t (*activation_bytes)(std::int64_t k, std::int64_t num_tokens);
  // Row `token` of num_tokens. Per 32 inputs: a scale, round-to-nearest-even(x * (1 / scale)) as an int8 and,
  // for the few inputs too large for that, a second one (activation.h), and the sums that zero points and
  // minima need. Returns false when x holds a NaN, an infinity or a value beyond 2^100 (the row is then
  // written as zeros): the caller fails that request, not the process.
  bool (*quantize_row)(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                       void* quantized);
  // As quantize_row, with one scale per 256 inputs.
  bool (*quantize_row_w8a8)(const float* x, std::int64_t k, std::int32_t token, std::int32_t num_tokens,
                            void* quantized);

  // out[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i], NaN where the sum of squares is no float. In place
  // allowed.
  void (*rms_norm)(const float* x, const float* weight, float eps, std::int64_t n, float* out);
  // sum[i] += what rms_norm makes of x[i].
  void (*rms_norm_add)(const float* x, const float* weight, float eps, std::int64_t n, float* sum);
  // out[i] = (x[i] - mean) / sqrt(variance + eps) * weight[i] + bias[i] (Ba et al. 2016), NaN where a sum is no
  // float. In place allowed.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, std::int64_t n,
                     float* out);
  // In place on one head; cos/sin are [rotary_dim / 2]; elements past rotary_dim are left alone.
  void (*rope)(float* head, const float* cos, const float* sin, std::int32_t rotary_dim, RopeStyle style);
  // out = f(gate) * up; of f(gate) alone where up is null.
  void (*silu_mul)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*gelu_tanh_mul)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*gelu_erf_mul)(const float* gate, const float* up, std::int64_t n, float* out);
  // g sigmoid(1.702 g) (u + 1), with g the gate but at most 7, and u within [-7, 7] (OpenAI's gpt-oss, 2025).
  void (*swiglu_oai)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*add)(const float* a, const float* b, std::int64_t n, float* out);       // a + b
  void (*scale)(const float* x, float factor, std::int64_t n, float* out);       // x * factor
  void (*add_scaled)(const float* x, float factor, std::int64_t n, float* sum);  // sum += x * factor, fused
  void (*soft_cap)(const float* x, float cap, std::int64_t n, float* out);       // cap * tanh(x / cap)
  // Returns false when a number is NaN, infinite or beyond the format (it is written as such, or in q12 its
  // whole row as zeros): the caller fails that request, as an infinite key might be just hidden from a query.
  bool (*write_kv)(const KvWriteArgs& args);
  void (*convert_cell)(const KvConvertArgs& args);
  void (*measure_cell)(const CellMeasureArgs& args);
  void (*attention)(const AttentionArgs& args);
  void (*attention_merge)(const AttentionMergeArgs& args);

  // The maximum of every kLogitsPerTile of n logits, a NaN where there is one.
  void (*tile_maxima)(const float* x, std::int64_t n, float* maxima);
  // In fixed tiles added in order.
  double (*sum_exp)(const float* x, float max, std::int64_t n);  // sum exp(x - max)
};

// The table of a named ISA; null when this host or build cannot run it.
const KernelTable* find_table(const char* isa);
// The best table this host runs.
const KernelTable& best_table();

}  // namespace kvasir::kernels
