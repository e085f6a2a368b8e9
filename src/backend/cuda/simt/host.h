// The door (simt.h) on the host executor.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

#include "backend/cuda/simt/executor.h"
#include "backend/cuda/simt/words.h"
#include "base/half.h"

#define KVASIR_KERNEL(threads)
#define KVASIR_DEVICE inline
#define KVASIR_UNROLL

namespace kvasir::simt {

using Here = std::source_location;  // where a kernel calls

// Memory and launches of the executor, with the names that device.h gives a real device's.
class Device {
 public:
  explicit Device(std::uint32_t order = 0) : executor_(order) {}

  Executor& executor() { return executor_; }
  template <class T>
  const T* input(std::span<const T> content) {
    return reinterpret_cast<const T*>(executor_.memory().add(std::as_bytes(content), AccessMode::kReadOnly));
  }
  template <class T>
  T* in_out(std::span<const T> content) {
    return reinterpret_cast<T*>(executor_.memory().add(std::as_bytes(content), AccessMode::kReadWrite));
  }
  template <class T>
  T* output(std::int64_t count) {
    return reinterpret_cast<T*>(
        executor_.memory().add_unwritten(count * static_cast<std::int64_t>(sizeof(T))));
  }
  std::byte* zeroed(std::int64_t bytes) { return executor_.memory().add_zeroed(bytes); }
  void free(const void* address) { executor_.memory().remove(static_cast<const std::byte*>(address)); }
  void copy_in(std::span<const std::byte> content, std::byte* address) { executor_.memory().copy_in(content, address); }
  template <class T>
  void copy_out(const T* address, std::span<T> out) {
    executor_.memory().copy_out(reinterpret_cast<const std::byte*>(address), std::as_writable_bytes(out));
  }
  // Whether kernels have written all of an output.
  bool is_written(const void* address, std::int64_t bytes) {
    return bytes == 0 || executor_.memory().is_written(static_cast<const std::byte*>(address), bytes);
  }
  // Frees all memory.
  void clear() { executor_.memory().clear(); }
  // Addresses, which cost nothing until they are written to.
  std::int64_t total_bytes() const { return std::int64_t{1} << 36; }
  std::int64_t free_bytes() const { return total_bytes(); }
  bool has_failed() const { return executor_.report().has_value(); }
  // The first error so far, or an empty line.
  std::string error() const { return executor_.report() ? executor_.report()->text : std::string(); }

 private:
  Executor executor_;
};

// Launches that run as one: here one after the other.
class Graph {
 public:
  Graph(Device&, std::function<void()> make) : make_(std::move(make)) {}
  void launch(Device&) { make_(); }

 private:
  std::function<void()> make_;
};

template <auto kernel, class... Args>
void launch(Device& device, Dim grid, std::uint32_t threads, std::int64_t shared_bytes, const Args&... args) {
  device.executor().launch(grid, threads, shared_bytes, [&] { kernel(args...); });
}

// --- Threads ---

inline int thread_index() { return static_cast<int>(executor().thread_index()); }
inline int num_threads() { return static_cast<int>(executor().num_threads()); }
inline int lane_index() { return thread_index() % kWarpSize; }
inline int warp_index() { return thread_index() / kWarpSize; }
inline int num_warps() { return num_threads() / kWarpSize; }
inline Dim block_index() { return executor().block_index(); }
inline Dim grid_size() { return executor().grid(); }

inline void sync_block(Here here = Here::current()) { executor().sync_block(here); }
inline void sync_warp(Here here = Here::current()) { executor().sync_warp(here); }

// --- Memory ---

// `count` values at a byte offset of the block's shared memory.
template <class T>
T* shared(std::int64_t offset, std::int64_t count, Here here = Here::current()) {
  return reinterpret_cast<T*>(executor().shared(offset, count * static_cast<std::int64_t>(sizeof(T)), here));
}
template <class T>
T load(const T* p, Here here = Here::current()) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  executor().read(p, sizeof(T), &value, here);
  return value;
}
template <class T>
void store(T* p, std::type_identity_t<T> value, Here here = Here::current()) {
  executor().write(p, sizeof(T), &value, here);
}
// A struct of 4-byte words.
template <class T>
T load_parts(const T* p, Here here = Here::current()) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  T value;
  for (std::size_t i = 0; i < sizeof(T) / 4; ++i) {
    const std::uint32_t word = load(reinterpret_cast<const std::uint32_t*>(p) + i, here);
    std::memcpy(reinterpret_cast<char*>(&value) + 4 * i, &word, 4);
  }
  return value;
}
inline std::uint32_t load4(const void* p, Here here = Here::current()) {
  return load(static_cast<const std::uint32_t*>(p), here);
}
inline Words2 load8(const void* p, Here here = Here::current()) {
  return load(static_cast<const Words2*>(p), here);
}
inline Words4 load16(const void* p, Here here = Here::current()) {
  return load(static_cast<const Words4*>(p), here);
}

// 16 bytes to shared memory, to be used after the wait for their group and a barrier.
inline void async_copy16(void* to, const void* from, Here here = Here::current()) {
  executor().async_copy(to, from, 16, here);
}
// Ends the group of the copies since the last call.
inline void async_commit() { executor().async_commit(); }
// Waits for this thread's groups but the last kGroupsLeft.
template <int kGroupsLeft>
void async_wait(Here here = Here::current()) {
  executor().async_wait(kGroupsLeft, here);
}

// --- Warps ---

namespace host {

template <class T>
Parcel parcel_of(T value) {
  static_assert(sizeof(T) == 4);
  return {{std::bit_cast<std::uint32_t>(value)}};
}

}  // namespace host

// The value of lane (this one ^ mask).
template <class T>
T shuffle_xor(T value, int mask, Here here = Here::current()) {
  Parcel brought = host::parcel_of(value);
  brought.words[1] = static_cast<std::uint32_t>(mask);
  const auto meeting = [](const Parcel* all, Parcel* taken) {
    for (std::uint32_t i = 0; i < kWarpSize; ++i)
      taken[i].words[0] = all[(i ^ all[i].words[1]) % kWarpSize].words[0];
  };
  return std::bit_cast<T>(executor().meet(brought, meeting, here).words[0]);
}
// The value of lane `from`.
template <class T>
T shuffle(T value, int from, Here here = Here::current()) {
  Parcel brought = host::parcel_of(value);
  brought.words[1] = static_cast<std::uint32_t>(from);
  const auto meeting = [](const Parcel* all, Parcel* taken) {
    for (int i = 0; i < kWarpSize; ++i) taken[i].words[0] = all[all[i].words[1] % kWarpSize].words[0];
  };
  return std::bit_cast<T>(executor().meet(brought, meeting, here).words[0]);
}
// Bit i: whether lane i says so.
inline std::uint32_t ballot(bool is_so, Here here = Here::current()) {
  const auto meeting = [](const Parcel* all, Parcel* taken) {
    std::uint32_t lanes = 0;
    for (int i = 0; i < kWarpSize; ++i) lanes |= all[i].words[0] << i;
    for (int i = 0; i < kWarpSize; ++i) taken[i].words[0] = lanes;
  };
  return executor().meet({{is_so}}, meeting, here).words[0];
}
// Whether any lane says so.
inline bool any_lane(bool is_so, Here here = Here::current()) {
  const auto meeting = [](const Parcel* all, Parcel* taken) {
    std::uint32_t any = 0;
    for (int i = 0; i < kWarpSize; ++i) any |= all[i].words[0];
    for (int i = 0; i < kWarpSize; ++i) taken[i].words[0] = any;
  };
  return executor().meet({{is_so}}, meeting, here).words[0] != 0;
}

namespace host {

// d[16][8] += a[16][k] b[k][8], lanes as the instructions m16n8k16 and m16n8k32 have them.
template <int kDepth>
void mma_s8(const Parcel* all, Parcel* taken) {
  constexpr int kWordsOfA = kDepth / 8, kWordsOfB = kDepth / 16;
  std::int8_t a[16][kDepth], b[8][kDepth];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int i = 0; i < kWordsOfA; ++i) {
      std::memcpy(&a[lane / 4 + i % 2 * 8][i / 2 * 16 + lane % 4 * 4], &all[lane].words[i], 4);
    }
    for (int i = 0; i < kWordsOfB; ++i)
      std::memcpy(&b[lane / 4][i * 16 + lane % 4 * 4], &all[lane].words[4 + i], 4);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const std::int8_t* row = a[lane / 4 + i / 2 * 8];
      const std::int8_t* column = b[lane % 4 * 2 + i % 2];
      std::int32_t sum = static_cast<std::int32_t>(all[lane].words[6 + i]);
      for (int k = 0; k < kDepth; ++k) sum += row[k] * column[k];
      taken[lane].words[i] = static_cast<std::uint32_t>(sum);
    }
  }
}

template <int kDepth, int kWordsOfA, int kWordsOfB>
void multiply(std::int32_t (&d)[4], const std::uint32_t (&a)[kWordsOfA], const std::uint32_t (&b)[kWordsOfB],
              Site site) {
  Parcel brought = {};
  for (int i = 0; i < kWordsOfA; ++i) brought.words[i] = a[i];
  for (int i = 0; i < kWordsOfB; ++i) brought.words[4 + i] = b[i];
  for (int i = 0; i < 4; ++i) brought.words[6 + i] = static_cast<std::uint32_t>(d[i]);
  const Parcel taken = executor().meet(brought, mma_s8<kDepth>, site);
  for (int i = 0; i < 4; ++i) d[i] = static_cast<std::int32_t>(taken.words[i]);
}

}  // namespace host

// d += a b in exact integers: 16 rows of 32 signed bytes by 8 columns. Lane l holds of a the bytes 4 (l % 4) .. + 3
// of row l / 4, the same of row l / 4 + 8, then both 16 bytes on; of b those of column l / 4; of d columns 2 (l % 4)
// and 2 (l % 4) + 1 of row l / 4, then of row l / 4 + 8.
inline void mma_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                   Here here = Here::current()) {
  host::multiply<32>(d, a, b, here);
}
// The same of 16 bytes.
inline void mma_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1],
                   Here here = Here::current()) {
  host::multiply<16>(d, a, b, here);
}

// --- Arithmetic ---

inline float fma_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline float div_rn(float a, float b) { return a / b; }
inline float sqrt_rn(float x) { return std::sqrt(x); }
inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float float_of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline float half_to_float(std::uint16_t bits) { return kvasir::half_to_float(bits); }
inline std::uint16_t float_to_half(float x) { return kvasir::float_to_half(x); }  // to nearest even
inline int round_to_int(float x) { return static_cast<int>(std::nearbyint(x)); }  // ties to even
// The bytes of (b, a), 0 to 7, that the low three bits of each nibble of `selector` name.
inline std::uint32_t select_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<std::uint32_t>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}
// sum + the products of four signed bytes.
inline int dot4(std::uint32_t a, std::uint32_t b, int sum) {
  for (int i = 0; i < 4; ++i)
    sum += static_cast<std::int8_t>(a >> 8 * i) * static_cast<std::int8_t>(b >> 8 * i);
  return sum;
}

}  // namespace kvasir::simt
