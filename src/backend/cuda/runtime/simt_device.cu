#include "backend/cuda/runtime/simt_device.h"

#include <utility>

#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

class SimtDevice final : public backend::GpuDevice {
 public:
  SimtDevice(std::uint32_t order, std::int64_t max_launches) : device_(order), max_launches_(max_launches) {}

  Memory memory() const override { return {.total_bytes = device_.total_bytes(), .free_bytes = device_.free_bytes()}; }

  void copy_in(std::span<const std::byte> from, void* to) override {
    if (is_usable()) device_.copy_in(from, static_cast<std::byte*>(to));
  }
  void copy_out(const void* from, std::span<std::byte> to) override {
    if (is_usable()) device_.copy_out(static_cast<const std::byte*>(from), to);
  }

  void matmul(DType dtype, const MatmulArgs& args) override {
    if (!may_launch()) return;
    if (args.num_tokens <= kMaxMatvecTokens && matvec(device_, dtype, args)) return;
    cuda::matmul(device_, dtype, args);
  }
  void quantize(const QuantizeArgs& args) override { run(cuda::quantize, args); }
  void norm(const NormArgs& args) override { run(cuda::norm, args); }
  void elementwise(const ElementwiseArgs& args) override { run(cuda::elementwise, args); }
  void rope_and_store(const RopeAndStoreArgs& args) override { run(cuda::rope_and_store, args); }
  void attention(const AttentionArgs& args) override { run(cuda::attention, args); }
  void attention_merge(const AttentionMergeArgs& args) override { run(cuda::attention_merge, args); }
  void tile_maxima(const TileMaximaArgs& args) override { run(cuda::tile_maxima, args); }
  void gather_rows(const GatherRowsArgs& args) override { run(cuda::gather_rows, args); }
  void finite_rows(const FiniteRowsArgs& args) override { run(cuda::finite_rows, args); }
  void combine_rows(const CombineRowsArgs& args) override { run(cuda::combine_rows, args); }

  std::string error() const override { return failure_.empty() ? device_.error() : failure_; }
  void fail(std::string reason) override {
    if (failure_.empty()) failure_ = std::move(reason);
  }

 protected:
  std::byte* take(std::int64_t num_bytes) override { return device_.zeroed(num_bytes); }
  const std::byte* take_constant(std::span<const std::byte> bytes) override { return device_.input(bytes); }
  void give_back(const void* memory) override { device_.free(memory); }

 private:
  bool is_usable() const { return failure_.empty() && !device_.has_failed(); }
  template <class Args>
  void run(void (*launch)(simt::Device&, const Args&), const Args& args) {
    if (may_launch()) launch(device_, args);
  }
  bool may_launch() {
    if (++num_launches_ > max_launches_ && max_launches_ > 0) fail("it has made all launches that it may");
    return is_usable();
  }

  simt::Device device_;
  const std::int64_t max_launches_;
  std::int64_t num_launches_ = 0;
  std::string failure_;  // of fail()
};

}  // namespace

std::unique_ptr<backend::GpuDevice> make_simt_device(std::uint32_t order, std::int64_t max_launches) {
  return std::make_unique<SimtDevice>(order, max_launches);
}

}  // namespace kvasir::cuda
