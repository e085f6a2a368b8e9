#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "backend/cuda/device/device_timer.h"
#include "backend/cuda/device/gpu_bench.h"
#include "backend/cuda/kernels/launchers.h"
#include "kernels/activation.h"
#include "kernels/packed.h"
#include "kernels/w8a8.h"
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

// How a matrix is packed, and so which kernels multiply by it.
struct Packing {
  std::string name;
  std::int64_t (*group_bytes)(std::int64_t k);  // of 16 rows
  DType dtype = DType::kQ8_0;
  bool w8a8 = false;
};

template <class Format>
Packing exact_packing() {
  using Unit = kernels::UnitOf<Format>;
  return {std::string(Format::kName),
          [](std::int64_t k) { return kernels::units_of<Unit>(k) * static_cast<std::int64_t>(sizeof(Unit)); },
          quant::kDTypeOf<Format>};
}

// Every format that is packed in blocks.
Packing fast_packing() {
  return {"fast mode", [](std::int64_t k) { return kernels::w8a8_group_bytes(k); }, DType::kQ8_0, true};
}

struct Load {
  std::int32_t tokens;
  bool has_outliers;
};

// Quantised rows of normal numbers, with outliers where a channel is 30 times as large.
void* random_activations(simt::Device& device, std::int64_t k, const Load& load, bool w8a8) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(k * load.tokens));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = normal(random) * (load.has_outliers && i % 211 == 5 ? 30.0f : 1.0f);
  auto* quantized = device.output<std::uint8_t>(kernels::activation_bytes(k, load.tokens));
  quantize(device, {.w8a8 = w8a8,
                    .x = device.input(std::span<const float>(x)),
                    .x_stride = k,
                    .k = k,
                    .num_tokens = load.tokens,
                    .quantized = quantized,
                    .is_usual = device.output<std::uint8_t>(load.tokens)});
  return quantized;
}

void print_row(const Packing& packing, const Shape& shape, const Load& load, double us, double gb_per_second,
               double copy) {
  const double tops = 2.0 * static_cast<double>(shape.k) * static_cast<double>(shape.rows) * load.tokens /
                      us / 1e6;
  std::printf(
      "bench\t%s\t%s\tk %lld rows %lld tokens %d%s\t%.2f us\t%.0f GB/s of weights\t%.3f of copy\t%.2f TOPS\n",
      load.tokens <= kMaxMatvecTokens ? "matvec" : "matmul", packing.name.c_str(),
      static_cast<long long>(shape.k), static_cast<long long>(shape.rows), load.tokens,
      load.has_outliers ? " outliers" : "", us, gb_per_second, gb_per_second / copy, tops);
  std::fflush(stdout);
}

// Weights whose bytes are all alike: their time is that of any others. Several matrices, so that no cache holds them.
void bench_shape(simt::Device& device, const Packing& packing, const Shape& shape, const Load& load,
                 double copy) {
  constexpr std::int64_t kLeastBytes = std::int64_t{512} << 20;
  const std::int64_t bytes = shape.rows / kernels::kPackedRows * packing.group_bytes(shape.k);
  const int matrices = static_cast<int>(kLeastBytes / bytes + 1);
  auto* weights = device.output<std::uint8_t>(bytes * matrices);
  device.note(cudaMemset(weights, 0x2a, static_cast<std::size_t>(bytes * matrices)));
  MatmulArgs args = {.quantized = random_activations(device, shape.k, load, packing.w8a8),
                     .w8a8 = packing.w8a8,
                     .k = shape.k,
                     .num_rows = shape.rows,
                     .num_tokens = load.tokens,
                     .out = device.output<float>(load.tokens * shape.rows),
                     .out_stride = shape.rows};
  const bool is_matvec = load.tokens <= kMaxMatvecTokens;
  int matrix = 0;
  const auto run = [&] {
    args.weights = weights + bytes * (matrix++ % matrices);
    if (is_matvec) {
      matvec(device, packing.dtype, args);
    } else {
      matmul(device, packing.dtype, args);
    }
  };
  const double us = median_us(run, is_matvec ? 50 : 5);
  print_row(packing, shape, load, us, static_cast<double>(bytes) / us * 1e6 / kGb, copy);
  device.clear();
}

void bench_packing(simt::Device& device, const Packing& packing, double copy) {
  for (const Shape& shape : kShapes) {
    for (const std::int32_t tokens : {1, 8, 64, 512})
      bench_shape(device, packing, shape, {tokens, false}, copy);
  }
  for (const std::int32_t tokens : {1, 512}) bench_shape(device, packing, kShapes[2], {tokens, true}, copy);
}

}  // namespace

bool bench_kernels(simt::Device& device) {
  const double copy = copy_bandwidth(device, std::int64_t{1} << 30);
  std::printf("bench\tcopy\t1 GiB\tread and written\t%.0f GB/s\n", copy);
  for (const Packing& packing :
       {exact_packing<quant::Q8_0>(), exact_packing<quant::Q4_0>(), exact_packing<quant::Q4_K>(),
        exact_packing<quant::Q6_K>(), fast_packing()}) {
    bench_packing(device, packing, copy);
  }
  return device.error().empty();
}

}  // namespace kvasir::cuda
