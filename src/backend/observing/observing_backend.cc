#include "backend/observing/observing_backend.h"

#include <charconv>
#include <numeric>

#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/expert_rows.h"

namespace kvasir::backend {

// Adapters read inputs as floats, and so does the observer.
ObservingBackend::ObservingBackend(const kernels::KernelTable& kernels, ThreadPool& pool, InputObserver& observer)
    : CpuBackend(kernels, pool, Precision::kExact), observer_(observer) {
  expect_adapters(AdapterType::kF16);
  keep_inputs_of_expert_down();
}

Result<std::unique_ptr<Matrix>> ObservingBackend::make_matrix(const TensorView& tensor, MatrixUse use) {
  KVASIR_TRY(std::unique_ptr<Matrix> matrix, CpuBackend::make_matrix(tensor, use));
  names_[matrix.get()] = tensor.name;
  return matrix;
}

Result<std::unique_ptr<Matrix>> ObservingBackend::adopt_matrix(const TensorView& tensor, MatrixUse use,
                                                               std::span<const std::byte> packed) {
  KVASIR_TRY(std::unique_ptr<Matrix> matrix, CpuBackend::adopt_matrix(tensor, use, packed));
  names_[matrix.get()] = tensor.name;
  return matrix;
}

void ObservingBackend::add_name(const Matrix* matrix) {
  const auto found = names_.find(matrix);
  if (found != names_.end()) of_op_.push_back(found->second);
}

void ObservingBackend::note(const Activation& in, std::int32_t num_rows) {
  const CpuActivation& rows = cpu(in);
  if (!of_op_.empty() && num_rows > 0) {
    observer_.observe(of_op_, {rows.floats, static_cast<std::size_t>(num_rows) * static_cast<std::size_t>(rows.width)}, rows.width);
  }
  of_op_.clear();
}

void ObservingBackend::norm(Rows x, const Norm& norm, Activation& out) {
  normed_ = x;
  CpuBackend::norm(x, norm, out);
}

void ObservingBackend::note_stream(std::int32_t layer, Rows x, std::span<const std::int32_t> rows) {
  stream_.clear();
  for (const std::int32_t row : rows) stream_.insert(stream_.end(), x.row(row), x.row(row) + x.width);
  observer_.observe_stream(layer, stream_, x.width);
}

namespace {

// The 7 of "blk.7.attn_q.weight" and "blk.7.attn_qkv.weight", which a layer begins with; -1 for others.
std::int32_t layer_that_begins(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix) || (!name.ends_with(".attn_q.weight") && !name.ends_with(".attn_qkv.weight"))) return -1;
  std::int32_t layer = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return layer;
}

}  // namespace

void ObservingBackend::matmul(const Activation& in, std::span<const MatmulOp> ops) {
  for (const MatmulOp& op : ops) add_name(op.weight);
  const std::int32_t layer = of_op_.empty() ? -1 : layer_that_begins(of_op_.front());
  if (layer >= 0 && normed_.data != nullptr) {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(num_rows()));
    std::iota(rows.begin(), rows.end(), 0);
    note_stream(layer, normed_, rows);
  }
  normed_ = {};
  note(in, num_rows());
  CpuBackend::matmul(in, ops);
}

void ObservingBackend::matmul_add(const Activation& in, const MatmulOp& op) {
  add_name(op.weight);
  note(in, num_rows());
  CpuBackend::matmul_add(in, op);
}

void ObservingBackend::add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) {
  add_name(op.gate.weight);
  if (op.up.weight != nullptr) add_name(op.up.weight);
  note(in, num_rows());
  CpuBackend::add_experts(op, in, rows, out);
  const auto found = names_.find(op.down.weight);
  if (found == names_.end()) return;
  const auto& experts = static_cast<const CpuExpertRows&>(rows);
  const std::int64_t width = experts.intermediate.width();
  for (std::int32_t expert = 0; expert < experts.shape().num_experts; ++expert) {
    const std::int32_t count = experts.num_rows_of(expert);
    if (count == 0) continue;
    observer_.observe_expert(found->second, expert, experts.shape().num_experts,
                             {experts.intermediate.floats(experts.first_slot(expert)), static_cast<std::size_t>(count * width)}, width);
  }
}

// The head writes its input into `scratch`.
void ObservingBackend::head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) {
  note_stream(InputObserver::kHead, op.x, rows);
  constexpr std::int32_t kFewest[] = {0};
  HeadOp of_observer = op;
  if (!observer_.wants_logits()) {
    of_observer.argmax_of.reset();
    of_observer.groups = kFewest;
  }
  CpuBackend::head(of_observer, rows, scratch);
  add_name(op.weight);
  note(scratch, static_cast<std::int32_t>(rows.size()));
}

}  // namespace kvasir::backend
