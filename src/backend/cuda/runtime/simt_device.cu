#include "backend/cuda/runtime/simt_device.h"

#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

class SimtDevice final : public backend::GpuDevice {
 public:
  explicit SimtDevice(std::uint32_t order) : device_(order) {}

  std::byte* allocate(std::int64_t num_bytes) override { return device_.zeroed(num_bytes); }
  const std::byte* allocate_constant(std::span<const std::byte> bytes) override { return device_.input(bytes); }
  void free(const void* memory) override { device_.free(memory); }
  void copy_in(std::span<const std::byte> from, void* to) override { device_.copy_in(from, static_cast<std::byte*>(to)); }
  void copy_out(const void* from, std::span<std::byte> to) override {
    device_.copy_out(static_cast<const std::byte*>(from), to);
  }

  void matmul(DType dtype, const MatmulArgs& args) override {
    if (args.num_tokens <= kMaxMatvecTokens && matvec(device_, dtype, args)) return;
    cuda::matmul(device_, dtype, args);
  }
  void quantize(const QuantizeArgs& args) override { cuda::quantize(device_, args); }
  void norm(const NormArgs& args) override { cuda::norm(device_, args); }
  void elementwise(const ElementwiseArgs& args) override { cuda::elementwise(device_, args); }
  void rope_and_store(const RopeAndStoreArgs& args) override { cuda::rope_and_store(device_, args); }
  void attention(const AttentionArgs& args) override { cuda::attention(device_, args); }
  void attention_merge(const AttentionMergeArgs& args) override { cuda::attention_merge(device_, args); }
  void tile_maxima(const TileMaximaArgs& args) override { cuda::tile_maxima(device_, args); }
  void gather_rows(const GatherRowsArgs& args) override { cuda::gather_rows(device_, args); }
  void finite_rows(const FiniteRowsArgs& args) override { cuda::finite_rows(device_, args); }
  void combine_rows(const CombineRowsArgs& args) override { cuda::combine_rows(device_, args); }

  std::string error() const override { return device_.error(); }

 private:
  simt::Device device_;
};

}  // namespace

std::unique_ptr<backend::GpuDevice> make_simt_device(std::uint32_t order) { return std::make_unique<SimtDevice>(order); }

}  // namespace kvasir::cuda
