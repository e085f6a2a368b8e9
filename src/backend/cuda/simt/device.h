// The door (simt.h) on a device: each function is an instruction or two. host.h says what they mean.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backend/cuda/simt/words.h"

#define KVASIR_KERNEL(threads) __global__ __launch_bounds__(threads)
#define KVASIR_DEVICE __device__ __forceinline__
#define KVASIR_UNROLL _Pragma("unroll")

namespace kvasir::simt {

inline constexpr int kWarpSize = 32;

struct Dim {
  std::uint32_t x = 1, y = 1, z = 1;
};

// Memory and launches of the current device, in order.
class Device {
 public:
  explicit Device(std::uint32_t = 0) {}  // of an order, which is the executor's
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    clear();
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  template <class T>
  const T* input(std::span<const T> content) {
    return in_out(content);
  }
  template <class T>
  T* in_out(std::span<const T> content) {
    T* const p = output<T>(static_cast<std::int64_t>(content.size()));
    if (p != nullptr) note(cudaMemcpy(p, content.data(), content.size_bytes(), cudaMemcpyHostToDevice));
    return p;
  }
  template <class T>
  T* output(std::int64_t count) {
    void* p = nullptr;
    if (count == 0) return nullptr;
    if (cudaMalloc(&p, static_cast<std::size_t>(count) * sizeof(T)) != cudaSuccess) {
      cudaGetLastError();  // a lack of memory is the caller's to say
      return nullptr;
    }
    memory_.push_back(p);
    return static_cast<T*>(p);
  }
  std::byte* zeroed(std::int64_t bytes) {
    auto* const p = output<std::byte>(bytes);
    if (p != nullptr) note(cudaMemset(p, 0, static_cast<std::size_t>(bytes)));
    return p;
  }
  void free(const void* p) {
    const auto it = std::find(memory_.begin(), memory_.end(), p);
    if (it == memory_.end()) return;
    note(cudaFree(*it));
    memory_.erase(it);
  }
  void copy_in(std::span<const std::byte> content, std::byte* p) {
    if (!content.empty()) note(cudaMemcpy(p, content.data(), content.size(), cudaMemcpyHostToDevice));
  }
  template <class T>
  void copy_out(const T* p, std::span<T> out) {
    if (!out.empty()) note(cudaMemcpy(out.data(), p, out.size_bytes(), cudaMemcpyDeviceToHost));
  }
  // That launches go to. Copies wait for it, and it for them.
  cudaStream_t stream() {
    if (stream_ == nullptr) note(cudaStreamCreate(&stream_));
    return stream_;
  }
  bool is_written(const void*, std::int64_t) const { return true; }  // a device does not know
  void clear() {
    for (void* p : memory_) note(cudaFree(p));
    memory_.clear();
  }
  std::int64_t total_bytes() const { return sizes().second; }
  std::int64_t free_bytes() const { return sizes().first; }
  bool has_failed() const { return error_ != cudaSuccess; }
  std::string error() const { return error_ == cudaSuccess ? std::string() : cudaGetErrorString(error_); }
  void note(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }

 private:
  // Free and all.
  static std::pair<std::int64_t, std::int64_t> sizes() {
    std::size_t left = 0, all = 0;
    if (cudaMemGetInfo(&left, &all) != cudaSuccess) return {};
    return {static_cast<std::int64_t>(left), static_cast<std::int64_t>(all)};
  }

  std::vector<void*> memory_;
  cudaStream_t stream_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

// Launches that run as one.
class Graph {
 public:
  // Records the launches that make() makes; they do not run now.
  template <class Make>
  Graph(Device& device, const Make& make) {
    cudaGraph_t graph = nullptr;
    device.note(cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeThreadLocal));
    make();
    device.note(cudaStreamEndCapture(device.stream(), &graph));
    if (graph == nullptr) return;
    device.note(cudaGraphInstantiate(&graph_, graph, 0));
    device.note(cudaGraphDestroy(graph));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }

  void launch(Device& device) { device.note(cudaGraphLaunch(graph_, device.stream())); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

template <auto kernel, class... Args>
void launch(Device& device, Dim grid, std::uint32_t threads, std::int64_t shared_bytes, const Args&... args) {
  constexpr std::int64_t kWithoutAsking = 48 << 10;
  if (shared_bytes > kWithoutAsking) {
    device.note(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes)));
  }
  kernel<<<dim3(grid.x, grid.y, grid.z), threads, static_cast<std::size_t>(shared_bytes), device.stream()>>>(args...);
  device.note(cudaGetLastError());
}

KVASIR_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
KVASIR_DEVICE int num_threads() { return static_cast<int>(blockDim.x); }
KVASIR_DEVICE int lane_index() { return thread_index() % kWarpSize; }
KVASIR_DEVICE int warp_index() { return thread_index() / kWarpSize; }
KVASIR_DEVICE int num_warps() { return num_threads() / kWarpSize; }
KVASIR_DEVICE Dim block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
KVASIR_DEVICE Dim grid_size() { return {gridDim.x, gridDim.y, gridDim.z}; }

KVASIR_DEVICE void sync_block() { __syncthreads(); }
KVASIR_DEVICE void sync_warp() { __syncwarp(); }

template <class T>
KVASIR_DEVICE T* shared(std::int64_t offset, std::int64_t) {
  extern __shared__ __align__(128) unsigned char kvasir_shared_memory[];
  return reinterpret_cast<T*>(kvasir_shared_memory + offset);
}
template <class T>
KVASIR_DEVICE T load(const T* p) {
  return *p;
}
template <class T>
KVASIR_DEVICE void store(T* p, std::type_identity_t<T> value) {
  *p = value;
}
template <class T>
KVASIR_DEVICE T load_parts(const T* p) {
  return *p;
}
KVASIR_DEVICE std::uint32_t load4(const void* p) { return *static_cast<const std::uint32_t*>(p); }
KVASIR_DEVICE Words2 load8(const void* p) {
  const uint2 words = *static_cast<const uint2*>(p);
  return {words.x, words.y};
}
KVASIR_DEVICE Words4 load16(const void* p) {
  const uint4 words = *static_cast<const uint4*>(p);
  return {words.x, words.y, words.z, words.w};
}

KVASIR_DEVICE void async_copy16(void* to, const void* from) {
  const auto shared_address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address), "l"(from) : "memory");
}
KVASIR_DEVICE void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kGroupsLeft>
KVASIR_DEVICE void async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroupsLeft) : "memory");
}

template <class T>
KVASIR_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <class T>
KVASIR_DEVICE T shuffle(T value, int from) {
  return __shfl_sync(0xffffffffu, value, from);
}
KVASIR_DEVICE std::uint32_t ballot(bool is_so) { return __ballot_sync(0xffffffffu, is_so); }
KVASIR_DEVICE bool any_lane(bool is_so) { return __any_sync(0xffffffffu, is_so) != 0; }

KVASIR_DEVICE void mma_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
KVASIR_DEVICE void mma_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

// Written as assembly, so that scripts/compile_kernels.py can tell it from one that a compiler made of `*` and `+`.
KVASIR_DEVICE float fma_rn(float a, float b, float c) {
  float result;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}
KVASIR_DEVICE float div_rn(float a, float b) { return __fdiv_rn(a, b); }
KVASIR_DEVICE float sqrt_rn(float x) { return __fsqrt_rn(x); }
KVASIR_DEVICE std::uint32_t bits_of(float x) { return __float_as_uint(x); }
KVASIR_DEVICE float float_of_bits(std::uint32_t bits) { return __uint_as_float(bits); }
KVASIR_DEVICE float half_to_float(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
KVASIR_DEVICE std::uint16_t float_to_half(float x) { return __half_as_ushort(__float2half_rn(x)); }
KVASIR_DEVICE int round_to_int(float x) { return __float2int_rn(x); }
KVASIR_DEVICE std::uint32_t select_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  return __byte_perm(a, b, selector & 0x7777u);
}
KVASIR_DEVICE int dot4(std::uint32_t a, std::uint32_t b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

}  // namespace kvasir::simt
