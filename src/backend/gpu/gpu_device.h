// A GPU as its backend sees it: memory, copies, and a launch for each kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "backend/cuda/kernels/launch_args.h"
#include "quant/dtype.h"

namespace kvasir::backend {

// Launches run in order, one after the other; a launch returns when it is queued. Addresses are of the device: the host
// may add offsets to them and nothing else. After an error nothing runs any more, and error() says what it was.
//
// Thread safety: none. C++20, for nvcc compiles an implementation.
class GpuDevice {
 public:
  struct Memory {
    std::int64_t total_bytes = 0;
    std::int64_t free_bytes = 0;  // of them, now
  };

  virtual ~GpuDevice() = default;

  virtual Memory memory() const = 0;
  // The bytes that allocations may take together.
  void limit(std::int64_t num_bytes) { limit_bytes_ = num_bytes; }
  std::int64_t limit_bytes() const { return limit_bytes_; }

  // Zeroed, at a multiple of 256; null where the limit or the device leaves none, and for 0 bytes.
  std::byte* allocate(std::int64_t num_bytes) {
    if (num_bytes > limit_bytes_ - used_bytes_) return nullptr;
    return note(take(num_bytes), num_bytes);
  }
  // Memory that kernels only read, with these bytes. Null as above.
  const std::byte* allocate_constant(std::span<const std::byte> bytes) {
    const auto num_bytes = static_cast<std::int64_t>(bytes.size());
    if (num_bytes > limit_bytes_ - used_bytes_) return nullptr;
    return note(take_constant(bytes), num_bytes);
  }
  // Gives back memory of either kind; null is allowed.
  void free(const void* memory) {
    const auto found = sizes_.find(memory);
    if (found == sizes_.end()) return;
    used_bytes_ -= found->second;
    sizes_.erase(found);
    give_back(memory);
  }
  // Complete when they return.
  void copy_in(std::span<const std::byte> from, void* to) {
    ++counts_.copies_in;
    write(from, to);
  }
  void copy_out(const void* from, std::span<std::byte> to) {
    ++counts_.copies_out;
    read(from, to);
  }
  // Since the device was opened. Each copy costs a transfer's latency, whatever its size.
  struct Counts {
    std::int64_t copies_in = 0, copies_out = 0;
    std::int64_t replayed_lists = 0;  // of launches, that ran as graphs
  };
  Counts counts() const { return counts_; }

  virtual void matmul(DType dtype, const cuda::MatmulArgs& args) = 0;
  virtual void quantize(const cuda::QuantizeArgs& args) = 0;
  virtual void norm(const cuda::NormArgs& args) = 0;
  virtual void elementwise(const cuda::ElementwiseArgs& args) = 0;
  virtual void rope_and_store(const cuda::RopeAndStoreArgs& args) = 0;
  virtual void attention(const cuda::AttentionArgs& args) = 0;
  virtual void attention_merge(const cuda::AttentionMergeArgs& args) = 0;
  virtual void tile_maxima(const cuda::TileMaximaArgs& args) = 0;
  virtual void gather_rows(const cuda::GatherRowsArgs& args) = 0;
  virtual void finite_rows(const cuda::FiniteRowsArgs& args) = 0;
  virtual void combine_rows(const cuda::CombineRowsArgs& args) = 0;

  // The first error so far in one line, or an empty one.
  virtual std::string error() const = 0;
  // An error of the caller's: nothing runs any more.
  virtual void fail(std::string reason) = 0;

 protected:
  // As their public names, without the limit.
  virtual std::byte* take(std::int64_t num_bytes) = 0;
  virtual const std::byte* take_constant(std::span<const std::byte> bytes) = 0;
  virtual void give_back(const void* memory) = 0;
  void count_replay() { ++counts_.replayed_lists; }
  virtual void write(std::span<const std::byte> from, void* to) = 0;
  virtual void read(const void* from, std::span<std::byte> to) = 0;

 private:
  template <class T>
  T* note(T* memory, std::int64_t num_bytes) {
    if (memory == nullptr) return nullptr;
    sizes_[memory] = num_bytes;
    used_bytes_ += num_bytes;
    return memory;
  }

  std::unordered_map<const void*, std::int64_t> sizes_;
  std::int64_t limit_bytes_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t used_bytes_ = 0;
  Counts counts_;
};

}  // namespace kvasir::backend
