// Functions of one float each: gates, the residual stream, soft caps.
#include "backend/cuda/kernels/exp_rn.h"
#include "backend/cuda/kernels/launchers.h"

namespace kvasir::cuda {
namespace {

constexpr int kThreads = 256;

KVASIR_DEVICE float gated(float activation, const float* b) {
  return b == nullptr ? activation : activation * simt::load(b);
}

KVASIR_KERNEL(kThreads) void elementwise_kernel(ElementwiseArgs args) {
  const std::int64_t i = std::int64_t{simt::block_index().x} * kThreads + simt::thread_index();
  if (i >= args.n) return;
  const std::int64_t row = simt::block_index().y;
  const float a = simt::load(args.a + row * args.a_stride + i);
  const float* b = args.b == nullptr ? nullptr : args.b + row * args.b_stride + i;
  float* out = args.out + row * args.out_stride + i;
  float result = 0.0f;
  switch (args.function) {
    case Elementwise::kSiluMul:
      result = gated(sigmoid_times(a, a), b);
      break;
    case Elementwise::kGeluTanhMul:
      result = gated(gelu_tanh(a), b);
      break;
    case Elementwise::kGeluErfMul:
      result = gated(gelu_erf(a), b);
      break;
    case Elementwise::kSwigluOai:
      result = swiglu_oai(a, simt::load(b));
      break;
    case Elementwise::kAdd:
      result = a + simt::load(b);
      break;
    case Elementwise::kScale:
      result = a * args.factor;
      break;
    case Elementwise::kAddScaled:
      result = simt::fma_rn(a, args.factor, simt::load(out));
      break;
    case Elementwise::kSoftCap:
      result = soft_capped(a, args.factor);
      break;
  }
  simt::store(out, result);
}

}  // namespace

void elementwise(simt::Device& device, const ElementwiseArgs& args) {
  const auto blocks = static_cast<std::uint32_t>((args.n + kThreads - 1) / kThreads);
  simt::launch<elementwise_kernel>(device, {blocks, static_cast<std::uint32_t>(args.num_rows)}, kThreads, 0, args);
}

}  // namespace kvasir::cuda
