// The device op contract: a small vocabulary of fused ops that every architecture's forward is written in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/batch_input.h"
#include "backend/experts.h"
#include "backend/tensors.h"
#include "base/aligned_buffer.h"
#include "kernels/table.h"
#include "kv/cells/attention_scores.h"
#include "kvasir/adapter_type.h"
#include "kvasir/result.h"
#include "tensor/tensor_view.h"

namespace kvasir::backend {

using kernels::kLogitsPerTile;
using kernels::kRowsPerGroup;
using kernels::RopeStyle;

enum class Precision : std::uint8_t {
  kExact,  // the file's bits
  kFast,   // block formats requantised to bytes with a scale per 256 inputs
};

enum class MatrixUse : std::uint8_t {
  kLayer,
  kArgmaxHead,  // of head() with argmax_of, of which it reads half
  kExperts,     // of ExpertMlpOp: equal ranges of rows, each a whole number of kernels::kRowsPerGroup
  kAdapter,     // of make_adapter()
  kByteAdapter, // of make_adapter(), rows of floats that are kept in bytes
};

struct PackedSize {
  std::int64_t num_bytes = 0;
  std::int64_t skipped_bytes = 0;  // of them, that a search for the greatest output hardly reads
  bool reads_floats = false;       // its products take inputs as floats, and not as bytes
};

struct MatmulOp {
  const Matrix* weight = nullptr;
  const float* bias = nullptr;  // [num_rows] or null
  Rows out;
  // The maximum of every kLogitsPerTile outputs of the head, a NaN where there is one.
  Rows tile_maxima = {};
};

// An adapter's addition to one matrix: outputs += factor * b (a inputs). A device may round a and b to half precision where
// the matrix is not in F32.
struct AdapterPart {
  const Matrix* weight = nullptr;
  std::int32_t rank = 0;
  float factor = 1.0f;
  std::span<const float> a;  // [rank, row_length]
  std::span<const float> b;  // [num_rows, rank]
};

enum class Gate : std::uint8_t {
  kSilu,
  kGeluTanh,
  kGeluErf,
  kSwigluOai,  // clamped, and with 1 added to up (kernels/table.h); always gated
};

enum class NormKind : std::uint8_t {
  kNone,   // the row as it is
  kRms,    // Zhang and Sennrich 2019
  kLayer,  // Ba et al. 2016
};

// A normalisation of rows as wide as the weight; the numbers are borrowed.
struct Norm {
  NormKind kind = NormKind::kNone;
  std::span<const float> weight;
  std::span<const float> bias;  // of kLayer
  float eps = 0.0f;
};

// Tables of rows as wide as those that are written. Without learned positions or token types theirs are empty.
struct EmbedOp {
  const TensorView* table = nullptr;
  float scale = 1.0f;
  std::span<const float> positions;  // one for each position of the batch
  std::span<const float> types;
};

// cos and sin of every row's position for one kind of RoPE; valid for one step.
struct RopeTable {
  std::span<const double> inverse_frequencies;  // [rotary_dim / 2], radians per position
  kernels::RopeStyle style = kernels::RopeStyle::kHalves;
  float factor = 1.0f;  // on cos and sin (Peng et al. 2023, "YaRN")
};

// Turns q and k of every row by its position and stores k and v in their pages. With norms, every head of q
// and k is RMS-normalised first (Qwen 3, Gemma 3), or their whole rows (OLMo 2). Without k it turns q alone: the
// layer reads what another one has stored.
struct RopeAndStoreOp {
  Rows q, k, v;
  bool is_v_k = false;            // v is written here: k as it was before its norm and RoPE (Gemma 4)
  const float* q_norm = nullptr;  // [head_dim], or of norms_rows [q.width] and [k.width]; or null
  const float* k_norm = nullptr;
  const float* v_norm = nullptr;  // [head_dim] or null
  bool norms_rows = false;
  float norm_eps = 0.0f;
  // Where set, q is multiplied by 1 + scale ln(1 + floor(position / length)) last (Llama 4, Ministral 3).
  float temperature_scale = 0.0f;
  std::int32_t temperature_length = 1;
  std::int32_t rope_index = 0;  // into the tables given to plan()
  std::int32_t group = 0;       // layer group, and the layer's index inside it
  std::int32_t layer_in_group = 0;
};

struct AttendOp {
  Rows q;
  std::int32_t group = 0;
  std::int32_t layer_in_group = 0;
  float scale = 1.0f;
  float softcap = 0.0f;
  const float* sinks = nullptr;  // [query heads] or null: kernels::AttentionMergeArgs
};

// Measures full blocks of one sequence, in their order. A cell that is gone measures 0.
struct MeasureBlocksOp {
  std::int32_t group = 0;
  std::span<const BlockId> blocks;
  std::int32_t first_block = 0;  // the place of the first one in the sequence
  // [cells, head_dim]: of the blocks before; these are added, and distinctness is what comes out
  // (kernels::CellMeasureArgs). Empty: the ratio of values to keys is.
  std::span<float> key_sums;
  std::span<float> results;         // [cells, blocks]
  std::span<float> longest_values;  // likewise: the greatest length of a block's values
};

// x = scale * (x + rms_norm(y) * weight), or without x in the sum.
struct NormAddOp {
  Rows y;
  std::span<const float> weight;
  float eps = 0.0f;
  Rows x;
  float scale = 1.0f;
  bool replaces = false;
};

// Rows of many parts, each as wide as the weight: x[row] = rms_norm of its parts + table[token of row] * scale.
struct EmbedPartsOp {
  const TensorView* table = nullptr;  // [tokens, x.width]
  float scale = 1.0f;
  std::span<const float> weight;
  float eps = 0.0f;
  Rows x;
};

struct HeadOp {
  Rows x;
  Norm norm;
  const Matrix* weight = nullptr;
  Rows logits;
  Rows tile_maxima;
  // Set: of a row's first so many logits only the greatest, and every other as great, is wanted. A tile that
  // has none of them may be left out: its maximum is then -infinity and its logits are not written. The last
  // of their tiles is always complete; what follows them is never written.
  std::optional<std::int32_t> argmax_of = {};
  // Beside argmax_of, by row: bit i % 64 of word i / 64 says whether logit i counts. Those that do not may be written as
  // -infinity. A row without words, or all without spans: all count.
  std::span<const std::span<const std::uint64_t>> allowed = {};
  // Set: only the logits of these groups of kernels::kRowsPerGroup, ascending, are wanted. No other is written, and no
  // tile's maximum.
  std::span<const std::int32_t> groups = {};
};

// Called by one thread at a time. Ops work on the batch last given to plan(). Nothing allocates between plan() and the
// next plan() once batch shapes repeat.
//
// Matrices, activations, Rows and the memory of cells are the device's: nobody but the backend reads or writes them.
// Pointers into them are handles, to which offsets may be added. Norms, biases and tables of rows are the host's. The
// calls that bring results home (host_row(), host_bytes(), measure_blocks(), non_finite_rows(),
// step_scores()) wait for the ops before them; other ops may return before their result is complete.
class Backend {
 public:
  virtual ~Backend() = default;

  // The bytes that weights, KV and workspace may take of the device's own memory; none: they take the host's.
  virtual std::optional<std::int64_t> memory_bytes() const { return std::nullopt; }
  // The part of these that ops take for themselves. Once the rows and activations are made.
  virtual std::int64_t scratch_bytes() const { return 0; }
  // Why the device gives no results any more, in one line; empty while it does. Such a device stays so.
  virtual std::string error() const { return {}; }

  // Layers from num_layers on keep their matrices in the host's memory, and the host multiplies with them.
  // Before the first matrix is made; for a device with memory of its own.
  virtual void keep_layers(std::int32_t) {}
  // The bytes of these, among the matrices made so far.
  virtual std::int64_t host_weight_bytes() const { return 0; }

  // Whether new cells may have the format. Error (kUsage) naming those that the device keeps.
  virtual Status check_cells(kv::KvFormat) const { return {}; }

  // Room for a matrix of the tensor's shape. Errors: kMachine (memory), kBadFile (shape).
  virtual Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use) = 0;
  // Packs the rows of `rows` as the matrix's rows from first_row, a multiple of kernels::kRowsPerGroup; only
  // the last call for a matrix may bring a number of rows that is none. Their bytes are not needed
  // afterwards.
  virtual void pack_rows(const TensorView& rows, std::int64_t first_row, Matrix& matrix) = 0;
  // A matrix over bytes that are packed already: what Matrix::bytes() was of one with the same shape, type and use.
  // They are borrowed for as long as the matrix lives, at a multiple of 64. Error (kBadFile): another size.
  virtual Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use,
                                                       std::span<const std::byte> packed) = 0;
  // The bytes that a matrix of the tensor's shape would take. Allocates nothing.
  virtual Result<PackedSize> packed_size(const TensorView& tensor, MatrixUse use) const = 0;
  // Room for activations of up to max_rows x max_width.
  virtual Result<std::unique_ptr<Activation>> make_activation(std::int32_t max_rows,
                                                              std::int32_t max_width) = 0;
  virtual Result<Rows> make_rows(std::int32_t max_rows, std::int32_t width) = 0;
  // Once the matrices of the experts are made.
  virtual Result<std::unique_ptr<ExpertRows>> make_expert_rows(const ExpertShape& shape) = 0;
  // Adapters of that type will be made, which read inputs as floats. Before make_activation().
  virtual void expect_adapters(AdapterType) {}
  // Adds to the products of matmul() and matmul_add() for the rows of slices that name it. The numbers are copied. It may
  // be called on another thread than the ops, which may run meanwhile; one call at a time.
  // Errors: kUnmet for a device that runs none, kBadFile (a number that the device cannot hold), kMachine (memory).
  virtual Result<std::unique_ptr<Adapter>> make_adapter(std::span<const AdapterPart>) {
    return make_error(ErrorKind::kUnmet, "this device runs no adapters");
  }
  // Adapter::num_bytes of one that make_adapter() would make.
  virtual std::int64_t adapter_bytes(std::span<const AdapterPart>) const { return 0; }
  // For the cells of all layer groups.
  virtual Result<AlignedBuffer> make_cell_memory(std::int64_t num_bytes) = 0;

  // All weights of a matrix as they are packed, until the next call of a member.
  virtual std::span<const std::byte> host_bytes(const Matrix& matrix) = 0;
  // A row's floats for the host to read and change, until the next plan(). Later ops may not see the changes.
  virtual std::span<float> host_row(const Rows& rows, std::int64_t row) = 0;
  virtual void write_row(std::span<const float> floats, const Rows& rows, std::int64_t row) = 0;

  // Fixes the batch of the coming ops: positions, attention tasks, rope tables. `batch` is borrowed until the
  // next plan().
  virtual void plan(const BatchInput& batch, std::span<const RopeTable> ropes) = 0;

  // Writes cells of `memory` anew in coarser formats. No target overlaps a source.
  virtual void convert_cells(std::span<const kv::CellConversion> conversions, std::byte* memory) = 0;

  // Bytes of `memory` from a cell on, brought home.
  virtual void read_cell(const std::byte* cell, std::span<std::byte> bytes) = 0;

  virtual void measure_blocks(const MeasureBlocksOp& op) = 0;

  // x[row] = table[token of row] * scale + positions[position of row] + types[type of row].
  virtual void embed(const EmbedOp& op, Rows x) = 0;
  // x = norm(x).
  virtual void norm_in_place(Rows x, const Norm& norm) = 0;
  virtual void embed_parts(const EmbedPartsOp& op) = 0;
  // out = norm(x).
  virtual void norm(Rows x, const Norm& norm, Activation& out) = 0;
  // out = norm(x) for rows [first_row, first_row + num_rows) of those that are left; row 0 of out is
  // first_row's.
  virtual void norm_rows(Rows x, const Norm& norm, std::int32_t first_row, std::int32_t num_rows,
                         Rows out) = 0;
  virtual void norm_add(const NormAddOp& op) = 0;
  virtual void matmul(const Activation& in, std::span<const MatmulOp> ops) = 0;
  // op.out += W in + bias: the residual stream. Requires: W has no scales.
  virtual void matmul_add(const Activation& in, const MatmulOp& op) = 0;
  // x += factor y.
  virtual void add(Rows y, float factor, Rows x) = 0;
  virtual void rope_and_store(const RopeAndStoreOp& op) = 0;
  virtual void attend(const AttendOp& op, Activation& out) = 0;
  // As attend, for the rows that want logits alone: once the last keys and values are stored nothing else is
  // needed of the others. These rows are moved together, in order, in op.q and in each of `rows`; later ops see
  // them alone, numbered from 0. Returns how many there are. No rope_and_store after it stores anything. Queries
  // that are observed are so, wanted or not: while more layers follow (not `is_last`) their rows all stay.
  virtual std::int32_t attend_wanted_rows(const AttendOp& op, std::span<const Rows> rows, bool is_last,
                                          Activation& out) = 0;
  // out = gate(gate_rows) * up_rows; where up_rows has no data, gate(gate_rows).
  virtual void gate(Gate kind, Rows gate_rows, Rows up_rows, Activation& out) = 0;
  // Chooses the experts of every row.
  virtual void route(const RouteOp& op, ExpertRows& rows) = 0;
  // out[row] += scale * the sum of weight * down(gate(row) * up(row)) over the row's experts in ascending
  // order, or without the addition (op.replaces).
  virtual void add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) = 0;
  // out[row] += scale * sigmoid(gate_rows[row]) * y[row], with one gate a row.
  virtual void add_gated(Rows gate_rows, Rows y, float scale, Rows out) = 0;
  // logits = W norm(x): the head. Row i of the logits is of row rows[i] of those that are left.
  virtual void head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) = 0;

  // In place, in what host_row() gave: logits * scale, then cap * tanh(logits / cap) where cap > 0. Both keep their
  // order, but may make neighbours equal.
  virtual void scale_and_cap(std::span<float> logits, float scale, float cap) = 0;

  // Per row of the batch as it was planned: true when a NaN or infinity was met on its way.
  virtual std::span<const std::uint8_t> non_finite_rows() const = 0;
  // The attention of a slice's observed queries since plan(), by layer group; groups with a window have none.
  // `row`: the row whose query it was where the slice has guesses; else 0.
  virtual std::span<const kv::StepScores> step_scores(std::int32_t slice, std::int32_t row) const = 0;

  // Bytes of weights left unread so far: by heads, because only the greatest logits were wanted, and of experts
  // that had no rows.
  virtual std::int64_t skipped_weight_bytes() const = 0;
};

}  // namespace kvasir::backend
