// The CPU backend with somebody who watches what its matrices are multiplied by.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu_backend.h"

namespace kvasir::backend {

// Called by the engine's thread between two ops.
class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // `rows`: [num_rows, width] floats, one behind the other, the input of every tensor of `names`.
  virtual void observe(std::span<const std::string_view> names, std::span<const float> rows, std::int64_t width) = 0;
  // The residual stream that a layer reads, where the layer begins with a norm; kHead: that the head reads.
  static constexpr std::int32_t kHead = -1;
  virtual void observe_stream(std::int32_t layer, std::span<const float> rows, std::int64_t width) {
    (void)layer, (void)rows, (void)width;
  }
  // `rows`: of one expert of a tensor that has all of them, the inputs of its part.
  virtual void observe_expert(std::string_view name, std::int32_t expert, std::int32_t num_experts, std::span<const float> rows,
                              std::int64_t width) {
    (void)name, (void)expert, (void)num_experts, (void)rows, (void)width;
  }
  // Whether the head is to be multiplied. Where not, logits mean nothing, and reading a text takes less time.
  virtual bool wants_logits() const { return true; }
};

// The observer sees each expert's own inputs of its second matrix, and those of all experts together of the first ones. Borrows all that it
// is given. Thread safety: as Backend.
class ObservingBackend final : public CpuBackend {
 public:
  ObservingBackend(const kernels::KernelTable& kernels, ThreadPool& pool, InputObserver& observer);

  Result<std::unique_ptr<Matrix>> make_matrix(const TensorView& tensor, MatrixUse use) override;
  Result<std::unique_ptr<Matrix>> adopt_matrix(const TensorView& tensor, MatrixUse use,
                                               std::span<const std::byte> packed) override;
  void norm(Rows x, const Norm& norm, Activation& out) override;
  void matmul(const Activation& in, std::span<const MatmulOp> ops) override;
  void matmul_add(const Activation& in, const MatmulOp& op) override;
  void add_experts(const ExpertMlpOp& op, const Activation& in, ExpertRows& rows, Rows out) override;
  void head(const HeadOp& op, std::span<const std::int32_t> rows, Activation& scratch) override;

 private:
  void note(const Activation& in, std::int32_t num_rows);
  void note_stream(std::int32_t layer, Rows x, std::span<const std::int32_t> rows);
  void add_name(const Matrix* matrix);

  InputObserver& observer_;
  std::map<const Matrix*, std::string> names_;
  std::vector<std::string_view> of_op_;  // names of the op that runs
  Rows normed_ = {};                     // of the last norm()
  std::vector<float> stream_;
};

}  // namespace kvasir::backend
