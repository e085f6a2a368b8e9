#include "backend/cuda/runtime/simt_device.h"

#include <utility>

#include "backend/cuda/kernels/launchers.h"
#include "backend/cuda/runtime/launch.h"
#include "backend/cuda/runtime/launch_graphs.h"

namespace kvasir::cuda {
namespace {

class SimtDevice final : public backend::GpuDevice {
 public:
  explicit SimtDevice(const SimtOptions& options) : options_(options), device_(options.order) {}

  Memory memory() const override { return {.total_bytes = device_.total_bytes(), .free_bytes = device_.free_bytes()}; }

  void matmul(DType dtype, const MatmulArgs& args) override { submit(MatmulLaunch{dtype, args}); }
  void quantize(const QuantizeArgs& args) override { submit(args); }
  void norm(const NormArgs& args) override { submit(args); }
  void elementwise(const ElementwiseArgs& args) override { submit(args); }
  void rope_and_store(const RopeAndStoreArgs& args) override { submit(args); }
  void attention(const AttentionArgs& args) override { submit(args); }
  void attention_merge(const AttentionMergeArgs& args) override { submit(args); }
  void tile_maxima(const TileMaximaArgs& args) override { submit(args); }
  void gather_rows(const GatherRowsArgs& args) override { submit(args); }
  void finite_rows(const FiniteRowsArgs& args) override { submit(args); }
  void combine_rows(const CombineRowsArgs& args) override { submit(args); }

  std::string error() const override { return failure_.empty() ? device_.error() : failure_; }
  void fail(std::string reason) override {
    if (failure_.empty()) failure_ = std::move(reason);
  }

 protected:
  std::byte* take(std::int64_t num_bytes) override { return device_.zeroed(num_bytes); }
  const std::byte* take_constant(std::span<const std::byte> bytes) override { return device_.input(bytes); }
  void give_back(const void* memory) override {
    flush();
    device_.free(memory);
  }
  void write(std::span<const std::byte> from, void* to) override {
    flush();
    if (is_usable()) device_.copy_in(from, static_cast<std::byte*>(to));
  }
  void read(const void* from, std::span<std::byte> to) override {
    flush();
    if (is_usable()) device_.copy_out(static_cast<const std::byte*>(from), to);
  }

 private:
  bool is_usable() const { return failure_.empty() && !device_.has_failed(); }

  void submit(const Launch& launch) {
    if (++num_launches_ > options_.max_launches && options_.max_launches > 0) fail("it has made all launches that it may");
    if (!is_usable()) return;
    if (options_.uses_graphs) {
      waiting_.push_back(launch);
    } else {
      run(launch);
    }
  }
  void flush() {
    if (waiting_.empty()) return;
    if (is_usable() && graphs_.run(device_, waiting_, [this](const Launch& launch) { run(launch); })) count_replay();
    waiting_.clear();
  }
  void run(const Launch& launch) {
    std::visit([this](const auto& args) { start(args); }, launch);
  }

  void start(const MatmulLaunch& launch) {
    if (launch.args.num_tokens <= kMaxMatvecTokens && matvec(device_, launch.dtype, launch.args)) return;
    cuda::matmul(device_, launch.dtype, launch.args);
  }
  void start(const QuantizeArgs& args) { cuda::quantize(device_, args); }
  void start(const NormArgs& args) { cuda::norm(device_, args); }
  void start(const ElementwiseArgs& args) { cuda::elementwise(device_, args); }
  void start(const RopeAndStoreArgs& args) { cuda::rope_and_store(device_, args); }
  void start(const AttentionArgs& args) { cuda::attention(device_, args); }
  void start(const AttentionMergeArgs& args) { cuda::attention_merge(device_, args); }
  void start(const TileMaximaArgs& args) { cuda::tile_maxima(device_, args); }
  void start(const GatherRowsArgs& args) { cuda::gather_rows(device_, args); }
  void start(const FiniteRowsArgs& args) { cuda::finite_rows(device_, args); }
  void start(const CombineRowsArgs& args) { cuda::combine_rows(device_, args); }

  const SimtOptions options_;
  simt::Device device_;
  LaunchList waiting_;
  LaunchGraphs graphs_;
  std::int64_t num_launches_ = 0;
  std::string failure_;  // of fail()
};

}  // namespace

std::unique_ptr<backend::GpuDevice> make_simt_device(const SimtOptions& options) {
  return std::make_unique<SimtDevice>(options);
}

}  // namespace kvasir::cuda
