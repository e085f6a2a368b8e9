#include "backend/cuda/cases/run_case.h"
#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

using Op = bool (*)(BoundCase& in);

// numbers: dtype, k, rows, tokens, accumulate, whether it is the fast mode's. arrays: weights, inputs, out.
MatmulArgs matmul_args(BoundCase& in) {
  return {.weights = in.at<void>(0),
          .quantized = in.at<void>(1),
          .x = in.at<float>(1),
          .w8a8 = in.number(5) != 0,
          .k = in.number(1),
          .num_rows = in.number(2),
          .num_tokens = static_cast<std::int32_t>(in.number(3)),
          .out = in.at<float>(2),
          .out_stride = in.number(2),
          .accumulate = in.number(4) != 0};
}

bool run_matvec(BoundCase& in) {
  return matvec(in.device(), static_cast<DType>(in.number(0)), matmul_args(in));
}

void run_matmul(BoundCase& in) { matmul(in.device(), static_cast<DType>(in.number(0)), matmul_args(in)); }

// numbers: k, tokens, whether it is the fast mode's. arrays: x, norm weight, quantised, usual.
void run_quantize(BoundCase& in) {
  quantize(in.device(), {.w8a8 = in.number(2) != 0,
                         .x = in.at<float>(0),
                         .x_stride = in.number(0),
                         .k = in.number(0),
                         .num_tokens = static_cast<std::int32_t>(in.number(1)),
                         .norm_weight = in.at<float>(1),
                         .norm_eps = 1e-5f,
                         .quantized = in.at<void>(2),
                         .is_usual = in.at<std::uint8_t>(3)});
}

// numbers: kind, width, rows. arrays: x, weight, bias, out.
void run_norm(BoundCase& in) {
  norm(in.device(), {.kind = static_cast<RowNorm>(in.number(0)),
                     .x = in.at<float>(0),
                     .x_stride = in.number(1),
                     .width = in.number(1),
                     .num_rows = in.number(2),
                     .weight = in.at<float>(1),
                     .bias = in.at<float>(2),
                     .eps = 1e-5f,
                     .out = in.at<float>(3),
                     .out_stride = in.number(1)});
}

// numbers: function, n, bits of the factor. arrays: a, b, out.
void run_elementwise(BoundCase& in) {
  elementwise(in.device(), {.function = static_cast<Elementwise>(in.number(0)),
                            .a = in.at<float>(0),
                            .b = in.at<float>(1),
                            .factor = in.float_number(2),
                            .n = in.number(1),
                            .out = in.at<float>(2)});
}

// numbers: n, rows. arrays: logits, maxima.
void run_tile_maxima(BoundCase& in) {
  tile_maxima(in.device(), {.logits = in.at<float>(0),
                            .stride = in.number(0),
                            .n = in.number(0),
                            .num_rows = static_cast<std::int32_t>(in.number(1)),
                            .maxima = in.at<float>(1),
                            .maxima_stride = (in.number(0) + 63) / 64});
}

// numbers: dtype, width, rows, bytes of a row, bits of the scale. arrays: as EmbedArgs has them.
bool run_embed(BoundCase& in) {
  return embed(in.device(), static_cast<DType>(in.number(0)),
               {.table = in.at<std::byte>(0),
                .row_bytes = in.number(3),
                .width = in.number(1),
                .num_rows = static_cast<std::int32_t>(in.number(2)),
                .tokens = in.at<std::int32_t>(1),
                .scale = in.float_number(4),
                .types = in.at<float>(2),
                .type_of = in.at<std::int32_t>(3),
                .positions = in.at<float>(4),
                .position_of = in.at<std::int32_t>(5),
                .x = in.at<float>(6)});
}

// numbers: rows, q heads, KV heads, head_dim, rotary_dim, interleaved, halves. arrays: q, k, v, angles, norms, cells,
// their blocks, slots, references, finite.
void run_rope_and_store(BoundCase& in) {
  const auto number = [&](std::size_t i) { return static_cast<std::int32_t>(in.number(i)); };
  rope_and_store(in.device(), {.q = in.at<float>(0),
                               .k = in.at<float>(1),
                               .v = in.at<float>(2),
                               .q_stride = std::int64_t{number(1)} * number(3),
                               .k_stride = std::int64_t{number(2)} * number(3),
                               .v_stride = std::int64_t{number(2)} * number(3),
                               .num_rows = number(0),
                               .num_q_heads = number(1),
                               .num_kv_heads = number(2),
                               .head_dim = number(3),
                               .rotary_dim = number(4),
                               .is_interleaved = number(5) != 0,
                               .cosines = in.at<float>(3),
                               .q_norm = in.at<float>(4),
                               .k_norm = in.at<float>(5),
                               .norm_eps = 1e-6f,
                               .are_halves = number(6) != 0,
                               .cells = in.at<std::byte>(6),
                               .block_of = in.at<std::int32_t>(7),
                               .slot_of = in.at<std::int32_t>(8),
                               .refs = in.at<std::uint64_t>(9),
                               .ref_stride = number(2),
                               .is_finite = in.at<std::uint8_t>(10)});
}

// numbers: tasks, q stride, group size, head_dim, window, ahead, bits of scale and soft cap.
// arrays: tasks, q, blocks, references, memory, out, max, sum, block sums.
void run_attention(BoundCase& in) {
  const auto number = [&](std::size_t i) { return static_cast<std::int32_t>(in.number(i)); };
  attention(in.device(), {.tasks = in.at<AttentionTask>(0),
                          .num_tasks = number(0),
                          .q = in.at<float>(1),
                          .q_stride = in.number(1),
                          .group_size = number(2),
                          .head_dim = number(3),
                          .window = number(4),
                          .ahead = number(5),
                          .scale = in.float_number(6),
                          .softcap = in.float_number(7),
                          .blocks = in.at<std::int32_t>(2),
                          .refs = in.at<std::uint64_t>(3),
                          .ref_stride = 1,  // one KV head
                          .memory = in.at<std::byte>(4),
                          .out = in.at<float>(5),
                          .max = in.at<float>(6),
                          .sum = in.at<float>(7),
                          .block_sums = in.at<float>(8)});
}

// numbers: rows, head_dim. arrays: out, max, sum, first, stride, chunks, sinks, merged.
void run_attention_merge(BoundCase& in) {
  float* const sums = in.device().output<float>(2 * in.number(0));
  attention_merge(in.device(), {.out = in.at<float>(0),
                                .max = in.at<float>(1),
                                .sum = in.at<float>(2),
                                .first = in.at<std::int32_t>(3),
                                .stride = in.at<std::int32_t>(4),
                                .num_chunks = in.at<std::int32_t>(5),
                                .num_rows = static_cast<std::int32_t>(in.number(0)),
                                .head_dim = static_cast<std::int32_t>(in.number(1)),
                                .sinks = in.at<float>(6),
                                .num_heads = static_cast<std::int32_t>(in.number(0)),
                                .merged = in.at<float>(7),
                                .row_max = sums,
                                .total_sum = sums + in.number(0)});
}

// numbers and arrays of these: make_move_cases.cc.
void run_gather_rows(BoundCase& in) {
  gather_rows(in.device(), {.x = in.at<float>(0),
                            .x_stride = in.number(2),
                            .rows = in.at<std::int32_t>(1),
                            .num_rows = static_cast<std::int32_t>(in.number(0)),
                            .width = in.number(1),
                            .out = in.at<float>(2),
                            .out_stride = in.number(1)});
}

void run_finite_rows(BoundCase& in) {
  finite_rows(in.device(), {.x = in.at<float>(0),
                            .x_stride = in.number(1),
                            .num_rows = static_cast<std::int32_t>(in.number(0)),
                            .width = in.number(1),
                            .is_finite = in.at<std::uint8_t>(1)});
}

void run_combine_rows(BoundCase& in) {
  combine_rows(in.device(), {.x = in.at<float>(0),
                             .x_stride = in.number(2),
                             .slots = in.at<std::int32_t>(1),
                             .weights = in.at<float>(2),
                             .num_rows = static_cast<std::int32_t>(in.number(0)),
                             .num_choices = static_cast<std::int32_t>(in.number(1)),
                             .width = in.number(2),
                             .scale = in.float_number(3),
                             .replaces = in.number(4) != 0,
                             .out = in.at<float>(3),
                             .out_stride = in.number(2)});
}

void run_elementwise_rows(BoundCase& in) {
  elementwise(in.device(), {.function = Elementwise::kSiluMul,
                            .a = in.at<float>(0),
                            .b = in.at<float>(0) + in.number(1),
                            .n = in.number(1),
                            .out = in.at<float>(1),
                            .num_rows = static_cast<std::int32_t>(in.number(0)),
                            .a_stride = in.number(2),
                            .b_stride = in.number(2),
                            .out_stride = in.number(3)});
}

void run_norm_parts(BoundCase& in) {
  norm(in.device(), {.x = in.at<float>(0),
                     .x_stride = in.number(3),
                     .width = in.number(2),
                     .num_rows = in.number(0),
                     .num_parts = static_cast<std::int32_t>(in.number(1)),
                     .weight = in.at<float>(1),
                     .eps = 1e-6f,
                     .out = in.at<float>(0),
                     .out_stride = in.number(3)});
}

// An op that has a kernel for every case.
template <void (*run)(BoundCase&)>
bool always(BoundCase& in) {
  run(in);
  return true;
}

struct NamedOp {
  const char* name;
  Op run;
};
constexpr NamedOp kOps[] = {
    {"matvec", run_matvec},
    {"matmul", always<run_matmul>},
    {"quantize", always<run_quantize>},
    {"norm", always<run_norm>},
    {"elementwise", always<run_elementwise>},
    {"tile_maxima", always<run_tile_maxima>},
    {"embed", run_embed},
    {"rope_and_store", always<run_rope_and_store>},
    {"attention", always<run_attention>},
    {"attention_merge", always<run_attention_merge>},
    {"gather_rows", always<run_gather_rows>},
    {"finite_rows", always<run_finite_rows>},
    {"combine_rows", always<run_combine_rows>},
    {"elementwise_rows", always<run_elementwise_rows>},
    {"norm_parts", always<run_norm_parts>},
};

}  // namespace

BoundCase::BoundCase(simt::Device& device, const OpCase& op) : device_(&device), op_(&op) {
  for (const CaseArray& array : op.arrays) {
    const std::span<const std::byte> content(array.content);
    if (array.role == ArrayRole::kInput) {
      arrays_.push_back(const_cast<std::byte*>(device.input(content)));
    } else if (array.role == ArrayRole::kInOut) {
      arrays_.push_back(device.in_out(content));
    } else {
      arrays_.push_back(device.output<std::byte>(static_cast<std::int64_t>(array.expected.size())));
    }
  }
}

bool BoundCase::launch() {
  for (const NamedOp& each : kOps) {
    if (op_->op == each.name) return each.run(*this);
  }
  return false;
}

std::vector<std::vector<std::byte>> BoundCase::outputs() const {
  std::vector<std::vector<std::byte>> outputs;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (op_->arrays[i].role == ArrayRole::kInput) continue;
    auto& output = outputs.emplace_back(op_->arrays[i].expected.size());
    device_->copy_out(arrays_[i], std::span<std::byte>(output));
  }
  return outputs;
}

bool BoundCase::has_written_all() const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const CaseArray& array = op_->arrays[i];
    const bool is_output = array.role == ArrayRole::kOutput;
    if (is_output && !device_->is_written(arrays_[i], static_cast<std::int64_t>(array.expected.size())))
      return false;
  }
  return true;
}

std::string run_case(simt::Device& device, const OpCase& op, std::vector<std::vector<std::byte>>& outputs) {
  BoundCase bound(device, op);
  if (!bound.launch()) return "no kernel for " + op.op + " " + op.name;
  outputs = bound.outputs();
  if (device.error().empty() && !bound.has_written_all()) return "an output is not wholly written";
  device.clear();
  return device.error();
}

}  // namespace kvasir::cuda
