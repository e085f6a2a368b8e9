// Arguments of the launchers of kernels. All pointers are of the device.
//
// C++20 without CUDA: host code that no nvcc compiles uses them too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::cuda {

// out = activations x W^T, or out += it.
struct MatmulArgs {
  const void* weights = nullptr;    // packed groups of 16 rows (kernels/packed.h), one behind the other
  const void* quantized = nullptr;  // num_tokens rows as kernels/activation.h has them; for formats of blocks
  const float* x = nullptr;         // [num_tokens, k]; for F32, F16 and BF16
  bool w8a8 = false;                // weights and quantised rows are the fast mode's (kernels/w8a8.h)
  std::int64_t k = 0;
  std::int64_t num_rows = 0;  // outputs
  std::int32_t num_tokens = 0;
  float* out = nullptr;         // [num_tokens, out_stride]
  std::int64_t out_stride = 0;  // in floats
  bool accumulate = false;
  friend bool operator==(const MatmulArgs&, const MatmulArgs&) = default;
};

inline constexpr int kMaxMatvecTokens = 8;

// Rows to int8 (KernelTable::quantize_row, or quantize_row_w8a8).
struct QuantizeArgs {
  bool w8a8 = false;
  const float* x = nullptr;
  std::int64_t x_stride = 0;  // in floats
  std::int64_t k = 0;         // a multiple of 32
  std::int32_t num_tokens = 0;
  const float* norm_weight = nullptr;  // [k] or null: of an RMS norm before
  float norm_eps = 0.0f;
  void* quantized = nullptr;  // activation_bytes(k, num_tokens)
  std::uint8_t*
      is_usual = nullptr;  // [num_tokens]: 0 for a row of zeros in place of one that cannot be rounded
  friend bool operator==(const QuantizeArgs&, const QuantizeArgs&) = default;
};

enum class RowNorm : std::uint8_t {
  kRms,     // KernelTable::rms_norm
  kRmsAdd,  // rms_norm_add
  kLayer,   // layer_norm
};
struct NormArgs {
  RowNorm kind = RowNorm::kRms;
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t width = 0;
  std::int64_t num_rows = 0;
  std::int32_t num_parts = 1;  // of a row, one behind the other: each is normalised by itself
  const float* weight = nullptr;
  const float* bias = nullptr;  // of kLayer
  float eps = 0.0f;
  float* out = nullptr;  // may be x
  std::int64_t out_stride = 0;
  friend bool operator==(const NormArgs&, const NormArgs&) = default;
};

enum class Elementwise : std::uint8_t {
  kSiluMul,      // silu(a) b; of a alone where b is null, as the two below
  kGeluTanhMul,  // gelu_tanh(a) b
  kGeluErfMul,   // gelu_erf(a) b
  kSwigluOai,    // KernelTable::swiglu_oai
  kAdd,          // a + b
  kScale,        // a factor
  kAddScaled,    // out + a factor, fused
  kSoftCap,      // factor tanh(a / factor)
};
struct ElementwiseArgs {
  Elementwise function = Elementwise::kAdd;
  const float* a = nullptr;
  const float* b = nullptr;
  float factor = 1.0f;
  std::int64_t n = 0;  // of a row
  float* out = nullptr;
  std::int32_t num_rows = 1;
  std::int64_t a_stride = 0, b_stride = 0, out_stride = 0;  // in floats
  friend bool operator==(const ElementwiseArgs&, const ElementwiseArgs&) = default;
};

// x[row] = table[token of row] * scale + types[type of row] + positions[position of row], the table as its file has it.
struct EmbedArgs {
  const std::byte* table = nullptr;
  std::int64_t row_bytes = 0;
  std::int64_t width = 0;
  std::int32_t num_rows = 0;
  const std::int32_t* tokens = nullptr;  // [num_rows]
  float scale = 1.0f;
  const float* types = nullptr;  // [types, width] or null
  const std::int32_t* type_of = nullptr;
  const float* positions = nullptr;  // [positions, width] or null
  const std::int32_t* position_of = nullptr;
  float* x = nullptr;  // [num_rows, width]
};

// Norms and turns the heads of q and k, and stores k and v in their cells (RopeAndStoreOp of backend.h).
struct RopeAndStoreArgs {
  float* q = nullptr;  // [num_rows, num_q_heads * head_dim], in place
  const float* k = nullptr;
  const float* v = nullptr;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;  // in floats, of a row
  std::int32_t num_rows = 0, num_q_heads = 0;
  std::int32_t num_kv_heads = 0;  // 0: q is turned alone
  std::int32_t head_dim = 0, rotary_dim = 0;
  bool is_interleaved = false;     // RopeStyle
  const float* cosines = nullptr;  // [num_rows, 2, rotary_dim / 2]: of a row, then its sines
  const float* q_norm = nullptr;   // [head_dim] or null
  const float* k_norm = nullptr;
  float norm_eps = 0.0f;
  bool are_halves = true;  // cells of F16, else of F32
  std::byte* cells = nullptr;
  const std::int32_t* block_of = nullptr;  // [num_rows]: of the pool
  const std::int32_t* slot_of = nullptr;   // [num_rows]: of the row's token in its cells
  const std::uint64_t* refs = nullptr;     // [blocks of the pool][ref_stride]: kv::KvCellRef by KV head
  std::int64_t ref_stride = 0;
  std::uint8_t* is_finite = nullptr;      // [num_rows, num_kv_heads]: 0 where a number is beyond the format
  friend bool operator==(const RopeAndStoreArgs&, const RopeAndStoreArgs&) = default;
};

// Some query tokens of one sequence and one KV head over one chunk of keys (kernels::AttentionArgs).
struct AttentionTask {
  std::int32_t first_row, num_tokens;  // of q
  std::int32_t first_position;
  std::int32_t kv_head;
  std::int32_t key_begin, key_end;  // of the chunk
  std::int32_t first_block;         // of the sequence, in `blocks`
  std::int32_t first_partial;       // row of the partial results
};
inline constexpr int kMaxAttentionRows = 16;  // num_tokens * group_size of a task
struct AttentionArgs {
  const AttentionTask* tasks = nullptr;
  std::int32_t num_tasks = 0;
  const float* q = nullptr;  // [rows, q_stride]
  std::int64_t q_stride = 0;
  std::int32_t group_size = 0, head_dim = 0;
  std::int32_t window = 0, ahead = 0;
  float scale = 1.0f, softcap = 0.0f;
  const std::int32_t* blocks = nullptr;  // of the pool, by logical block; negative where it is gone
  const std::uint64_t* refs = nullptr;   // [blocks of the pool][ref_stride]: kv::KvCellRef by KV head
  std::int64_t ref_stride = 0;
  const std::byte* memory = nullptr;  // that references count from: cells of F16 and F32
  float* out = nullptr;               // [partial rows, head_dim]
  float* max = nullptr;
  float* sum = nullptr;
  float* block_sums = nullptr;  // [partial rows, 32] or null
  friend bool operator==(const AttentionArgs&, const AttentionArgs&) = default;
};

// Merges the chunks of rows in order and divides (kernels::AttentionMergeArgs, but for the logarithm).
struct AttentionMergeArgs {
  const float* out = nullptr;  // partial results: chunk c of row r is row first[r] + c stride[r]
  const float* max = nullptr;
  const float* sum = nullptr;
  const std::int32_t* first = nullptr;
  const std::int32_t* stride = nullptr;
  const std::int32_t* num_chunks = nullptr;
  std::int32_t num_rows = 0;  // heads of tokens
  std::int32_t head_dim = 0;
  const float* sinks = nullptr;  // [num_heads] or null
  std::int32_t num_heads = 1;
  float* merged = nullptr;     // [num_rows, head_dim]
  float* row_max = nullptr;    // [num_rows]
  float* total_sum = nullptr;  // [num_rows]: the softmax denominator relative to row_max
  friend bool operator==(const AttentionMergeArgs&, const AttentionMergeArgs&) = default;
};

// The maximum of every 64 logits of rows of n, a NaN where there is one.
struct TileMaximaArgs {
  const float* logits = nullptr;
  std::int64_t stride = 0;
  std::int64_t n = 0;
  std::int32_t num_rows = 0;
  float* maxima = nullptr;  // [num_rows, maxima_stride], of which ceil(n / 64) are written
  std::int64_t maxima_stride = 0;
  friend bool operator==(const TileMaximaArgs&, const TileMaximaArgs&) = default;
};

// out[i] = x[rows[i]], or x[i] where there are none.
struct GatherRowsArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  const std::int32_t* rows = nullptr;  // [num_rows] or null
  std::int32_t num_rows = 0;
  std::int64_t width = 0;
  float* out = nullptr;  // not x
  std::int64_t out_stride = 0;
  friend bool operator==(const GatherRowsArgs&, const GatherRowsArgs&) = default;
};

// is_finite[i] = whether every number of row i is finite.
struct FiniteRowsArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  std::int32_t num_rows = 0;
  std::int64_t width = 0;
  std::uint8_t* is_finite = nullptr;
  friend bool operator==(const FiniteRowsArgs&, const FiniteRowsArgs&) = default;
};

// out[row] += scale * the sum of weights[row][c] * x[slots[row][c]], the choices c in order and without fused additions.
struct CombineRowsArgs {
  const float* x = nullptr;  // [slots, x_stride]
  std::int64_t x_stride = 0;
  const std::int32_t* slots = nullptr;  // [num_rows, num_choices]
  const float* weights = nullptr;       // likewise
  std::int32_t num_rows = 0, num_choices = 1;
  std::int64_t width = 0;
  float scale = 1.0f;
  bool replaces = false;  // instead of the addition
  float* out = nullptr;
  std::int64_t out_stride = 0;
  friend bool operator==(const CombineRowsArgs&, const CombineRowsArgs&) = default;
};

}  // namespace kvasir::cuda
