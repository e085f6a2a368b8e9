#include "backend/cuda/cases/run_case.h"
#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

using Op = bool (*)(BoundCase& in);

// numbers: dtype, k, rows, tokens, accumulate. arrays: weights, inputs, out.
MatmulArgs matmul_args(BoundCase& in) {
  return {.weights = in.at<void>(0),
          .quantized = in.at<void>(1),
          .x = in.at<float>(1),
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

struct NamedOp {
  const char* name;
  Op run;
};
constexpr NamedOp kOps[] = {
    {"matvec", run_matvec},
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
