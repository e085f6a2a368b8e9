#include "backend/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/cache_sizes.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "kernels/probe.h"

namespace kvasir::backend {
namespace {

constexpr double kRunSeconds = 0.01;
constexpr int kRuns = 5;
constexpr std::int64_t kLeastBufferBytes = std::int64_t{16} << 20;
constexpr std::int64_t kUsualBufferBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 30;

// Work per second of `run(amount)`, which does `amount` units on each of num_threads threads: the best of a
// few runs, each long enough for the clock and for sleeping workers to wake up.
template <class Run>
double best_rate(ThreadPool& pool, int num_threads, const Run& run) {
  const auto seconds = [&](std::int64_t amount) {
    const auto begin = std::chrono::steady_clock::now();
    pool.parallel_for(num_threads, [&](std::int64_t thread) { run(thread, amount); });
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::int64_t amount = 1;
  while (seconds(amount) < kRunSeconds) amount *= 2;
  double best = seconds(amount);
  for (int i = 1; i < kRuns; ++i) best = std::min(best, seconds(amount));
  return static_cast<double>(amount) * num_threads / best;
}

// Slices of `buffer`, one for each thread, read again and again.
class BandwidthProbe {
 public:
  BandwidthProbe(ThreadPool& pool, AlignedBuffer& buffer) : pool_(pool), buffer_(buffer) {
    // Untouched pages are all the same page of zeros, which the caches hold.
    pool_.parallel_for(pool_.num_threads(),
                       [&](std::int64_t thread) { std::fill_n(slice(thread), slice_bytes(), std::byte{1}); });
  }

  std::int64_t slice_bytes() const { return round_down(buffer_.size_bytes() / pool_.num_threads()); }

  // From working sets of num_bytes a thread.
  ReadBandwidth measure(std::string level, std::int64_t num_bytes) {
    num_bytes = round_down(std::min(num_bytes, slice_bytes()));
    const double one_thread = read_gb_s(1, num_bytes);
    return {.level = std::move(level),
            .working_set_bytes = num_bytes,
            .one_thread_gb_s = one_thread,
            .all_threads_gb_s = std::max(one_thread, read_gb_s(pool_.num_threads(), num_bytes))};
  }

  // From the whole buffer, whether one thread reads it or all do.
  ReadBandwidth measure_whole(std::string level, ProbeScope scope) {
    ReadBandwidth bandwidth{.level = std::move(level), .working_set_bytes = buffer_.size_bytes()};
    bandwidth.all_threads_gb_s = read_gb_s(pool_.num_threads(), slice_bytes());
    if (scope == ProbeScope::kEverything)
      bandwidth.one_thread_gb_s = read_gb_s(1, round_down(buffer_.size_bytes()));
    bandwidth.all_threads_gb_s = std::max(bandwidth.all_threads_gb_s, bandwidth.one_thread_gb_s);
    return bandwidth;
  }

 private:
  static std::int64_t round_down(std::int64_t num_bytes) {
    return std::max(num_bytes / kernels::kReadGranuleBytes, std::int64_t{1}) * kernels::kReadGranuleBytes;
  }

  double read_gb_s(int num_threads, std::int64_t num_bytes) {
    const auto read = [&](std::int64_t thread, std::int64_t amount) {
      std::uint64_t sum = 0;
      for (std::int64_t i = 0; i < amount; ++i) sum += kernels::probe_loops().read(slice(thread), num_bytes);
      sink_.fetch_add(sum, std::memory_order_relaxed);
    };
    return 1e-9 * static_cast<double>(num_bytes) * best_rate(pool_, num_threads, read);
  }

  std::byte* slice(std::int64_t thread) { return buffer_.data() + thread * slice_bytes(); }

  ThreadPool& pool_;
  AlignedBuffer& buffer_;
  std::atomic<std::uint64_t> sink_{0};
};

Result<std::vector<ReadBandwidth>> measure_levels(ThreadPool& pool, ProbeScope scope) {
  const CacheSizes caches = read_cache_sizes();
  const std::int64_t wanted = std::min(4 * caches.l3_bytes, kMaxBufferBytes);
  const std::int64_t available = std::max(available_memory_bytes() / 4, kLeastBufferBytes);
  KVASIR_TRY(AlignedBuffer buffer,
             AlignedBuffer::allocate(std::min(std::max(wanted, kUsualBufferBytes), available)));
  BandwidthProbe probe(pool, buffer);
  std::vector<ReadBandwidth> levels;
  if (scope == ProbeScope::kEverything) {
    // Half a cache leaves room for what else lives there; a share of L3 that does not fit L2 is L3's.
    if (caches.l1_bytes > 0) levels.push_back(probe.measure("L1", caches.l1_bytes / 2));
    if (caches.l2_bytes > 0) levels.push_back(probe.measure("L2", caches.l2_bytes / 2));
    const std::int64_t l3_share = caches.l3_bytes / 2 / pool.num_threads();
    if (l3_share > caches.l2_bytes) levels.push_back(probe.measure("L3", l3_share));
  }
  levels.push_back(probe.measure_whole("DRAM", scope));
  return levels;
}

}  // namespace

Result<MachineLimits> measure_machine_limits(int num_threads, ProbeScope scope) {
  ThreadPool pool(num_threads);
  MachineLimits limits;
  limits.num_threads = num_threads;
  KVASIR_TRY(limits.levels, measure_levels(pool, scope));
  limits.read_gb_s = limits.levels.back().all_threads_gb_s;

  const kernels::ProbeLoops& loops = kernels::probe_loops();
  std::atomic<std::int64_t> sink{0};
  constexpr std::int64_t kRounds = 1000;
  const auto int8 = [&](std::int64_t, std::int64_t amount) { sink += loops.int8_dot(amount * kRounds); };
  const auto fp32 = [&](std::int64_t, std::int64_t amount) {
    sink += static_cast<std::int64_t>(loops.fp32_fma(amount * kRounds));
  };
  const double int8_scale = 1e-9 * static_cast<double>(kRounds * loops.int8_macs_per_round);
  const double fp32_scale = 1e-9 * static_cast<double>(kRounds * loops.fp32_flops_per_round);
  limits.int8_gmac_s = int8_scale * best_rate(pool, num_threads, int8);
  limits.fp32_gflop_s = fp32_scale * best_rate(pool, num_threads, fp32);
  if (scope == ProbeScope::kEverything) {
    limits.one_thread_int8_gmac_s = int8_scale * best_rate(pool, 1, int8);
    limits.one_thread_fp32_gflop_s = fp32_scale * best_rate(pool, 1, fp32);
  }
  return limits;
}

}  // namespace kvasir::backend
