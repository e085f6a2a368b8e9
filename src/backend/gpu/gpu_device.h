// A GPU as its backend sees it: memory, copies, and a launch for each kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "backend/cuda/kernels/launch_args.h"
#include "quant/dtype.h"

namespace kvasir::backend {

// Launches run in order, one after the other; a launch returns when it is queued. Addresses are of the device: the host
// may add offsets to them and nothing else. After an error nothing runs any more, and error() says what it was.
//
// Thread safety: none. C++20, for nvcc compiles an implementation.
class GpuDevice {
 public:
  virtual ~GpuDevice() = default;

  // Zeroed, at a multiple of 256; null where there is none left, and for 0 bytes.
  virtual std::byte* allocate(std::int64_t num_bytes) = 0;
  // Memory that kernels only read, with these bytes. Null as above.
  virtual const std::byte* allocate_constant(std::span<const std::byte> bytes) = 0;
  // Gives back memory of either kind; null is allowed.
  virtual void free(const void* memory) = 0;
  // Complete when they return.
  virtual void copy_in(std::span<const std::byte> from, void* to) = 0;
  virtual void copy_out(const void* from, std::span<std::byte> to) = 0;

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
};

}  // namespace kvasir::backend
