#include <cstdio>
#include <random>
#include <vector>

#include "backend/cuda/device/device_timer.h"
#include "backend/cuda/device/gpu_bench.h"
#include "backend/cuda/kernels/launchers.h"
#include "kernels/activation.h"
#include "kernels/packed.h"
#include "quant/formats.h"

namespace kvasir::cuda {
namespace {

constexpr double kGb = 1e9;

// Bytes read and written by a copy of `bytes` within the device, in GB/s.
double copy_bandwidth(simt::Device& device, std::int64_t bytes) {
  auto* from = device.output<char>(bytes);
  auto* to = device.output<char>(bytes);
  if (from == nullptr || to == nullptr) return 0.0;
  device.note(cudaMemset(from, 1, static_cast<std::size_t>(bytes)));
  const double us = median_us(
      [&] { cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice); }, 10);
  device.clear();
  return 2.0 * static_cast<double>(bytes) / us * 1e6 / kGb;
}

struct Shape {
  const char* name;
  std::int64_t k, rows;
};
// The matrices of an 8B model's layer.
constexpr Shape kShapes[] = {
    {"qkv", 4096, 6144}, {"out", 4096, 4096}, {"gate_up", 4096, 28672}, {"down", 14336, 4096}};

// Quantised rows of normal numbers, with outliers where a channel is 30 times as large.
void* random_activations(simt::Device& device, std::int64_t k, std::int32_t tokens, bool has_outliers) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(k * tokens));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = normal(random) * (has_outliers && i % 211 == 5 ? 30.0f : 1.0f);
  auto* quantized = device.output<std::uint8_t>(kernels::activation_bytes(k, tokens));
  quantize(device, {.x = device.input(std::span<const float>(x)),
                    .x_stride = k,
                    .k = k,
                    .num_tokens = tokens,
                    .quantized = quantized,
                    .is_usual = device.output<std::uint8_t>(tokens)});
  return quantized;
}

// Weights whose bytes are all alike: their time is that of any others. Several matrices, so that no cache holds them.
template <class Format>
void bench_shape(simt::Device& device, const Shape& shape, std::int32_t tokens, bool has_outliers,
                 double copy) {
  using Unit = kernels::UnitOf<Format>;
  constexpr std::int64_t kLeastBytes = std::int64_t{512} << 20;
  const std::int64_t bytes = shape.rows / kernels::kPackedRows * kernels::units_of<Unit>(shape.k) *
                             static_cast<std::int64_t>(sizeof(Unit));
  const int matrices = static_cast<int>(kLeastBytes / bytes + 1);
  auto* weights = device.output<std::uint8_t>(bytes * matrices);
  device.note(cudaMemset(weights, 0x2a, static_cast<std::size_t>(bytes * matrices)));
  MatmulArgs args = {.quantized = random_activations(device, shape.k, tokens, has_outliers),
                     .k = shape.k,
                     .num_rows = shape.rows,
                     .num_tokens = tokens,
                     .out = device.output<float>(tokens * shape.rows),
                     .out_stride = shape.rows};
  int matrix = 0;
  const auto run = [&] {
    args.weights = weights + bytes * (matrix++ % matrices);
    if (tokens <= kMaxMatvecTokens) {
      matvec(device, quant::kDTypeOf<Format>, args);
    } else {
      matmul(device, quant::kDTypeOf<Format>, args);
    }
  };
  const double us = median_us(run, tokens <= kMaxMatvecTokens ? 50 : 5);
  const double gb_per_second = static_cast<double>(bytes) / us * 1e6 / kGb;
  const double tops = 2.0 * static_cast<double>(shape.k) * static_cast<double>(shape.rows) * tokens / us /
                      1e6;
  std::printf(
      "bench\t%s\t%s\tk %lld rows %lld tokens %d%s\t%.2f us\t%.0f GB/s of weights\t%.3f of copy\t%.2f TOPS\n",
      tokens <= kMaxMatvecTokens ? "matvec" : "matmul", std::string(Format::kName).c_str(),
      static_cast<long long>(shape.k), static_cast<long long>(shape.rows), tokens,
      has_outliers ? " outliers" : "", us, gb_per_second, gb_per_second / copy, tops);
  std::fflush(stdout);
  device.clear();
}

template <class Format>
void bench_format(simt::Device& device, double copy) {
  for (const Shape& shape : kShapes) {
    for (const std::int32_t tokens : {1, 8, 64, 512}) bench_shape<Format>(device, shape, tokens, false, copy);
  }
  bench_shape<Format>(device, kShapes[2], 1, true, copy);
  bench_shape<Format>(device, kShapes[2], 512, true, copy);
}

}  // namespace

bool bench_kernels(simt::Device& device) {
  const double copy = copy_bandwidth(device, std::int64_t{1} << 30);
  std::printf("bench\tcopy\t1 GiB\tread and written\t%.0f GB/s\n", copy);
  bench_format<quant::Q8_0>(device, copy);
  bench_format<quant::Q4_0>(device, copy);
  bench_format<quant::Q4_K>(device, copy);
  bench_format<quant::Q6_K>(device, copy);
  return device.error().empty();
}

}  // namespace kvasir::cuda
