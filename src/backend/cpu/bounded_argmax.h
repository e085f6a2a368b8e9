// The greatest logits of rows without the others: a search that reads a little over half of the head.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_tensors.h"
#include "backend/cpu/weight_prefetcher.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Bounds every tile of logits from the high plane of a matrix in nibble planes (kernels/nibble_planes.h),
// narrows the bounds that reach the best logit so far, and computes the groups that still do. Which groups
// are computed in vain depends on the workers' pace; the greatest logit does not: it comes from the one
// matmul there is.
//
// Borrows the table, the pool and the prefetcher. One caller at a time; allocates only for the first search.
class BoundedArgmax {
 public:
  // Above this many rows bounding the logits of each takes as long as computing them all.
  static constexpr std::int32_t kMaxRows = 4;

  BoundedArgmax(const kernels::KernelTable& kernels, ThreadPool& pool, WeightPrefetcher& prefetcher)
      : kernels_(kernels), pool_(pool), prefetcher_(prefetcher) {}

  // Writes op.logits and op.tile_maxima of num_rows rows as HeadOp::argmax_of says. `quantized` are the rows'
  // inputs. Requires: op.weight lies in nibble planes, 1 <= op.argmax_of <= its rows, num_rows <= kMaxRows.
  void find(const HeadOp& op, const std::byte* quantized, std::int32_t num_rows);

  // Bytes of the low plane that all searches so far have left unread.
  std::int64_t skipped_bytes() const { return skipped_bytes_; }

 private:
  static constexpr std::int64_t kGroups = kLogitsPerTile / kernels::kRowsPerGroup;  // of a tile

  // A tile's bounds, by row.
  struct Bounds {
    std::int64_t tile = 0;
    std::array<std::array<float, kLogitsPerTile>, kMaxRows> estimate, slack;
    std::array<std::array<float, kGroups>, kMaxRows> upper, lower;
  };

  std::int64_t first_group(std::int64_t tile) const { return tile * kGroups; }
  std::int64_t end_group(std::int64_t tile) const;
  kernels::BoundArgs args_of(Bounds& bounds, std::int32_t row, std::int64_t group_begin,
                             std::int64_t group_end);
  // The bits of a row's logits in a tile that count.
  std::uint64_t counting(std::int64_t tile, std::int32_t row) const;
  // Makes bounds of groups those of the logits that count.
  void narrow(Bounds& bounds, const kernels::BoundArgs& args, std::int32_t row) const;
  bool reaches_best(const Bounds& bounds, std::int32_t row, std::int64_t i) const;
  void bound(Bounds& bounds);
  void hide(std::int64_t tile, std::int32_t row);
  enum class Verdict : std::uint8_t { kBounded, kRefined, kWanted };  // ruled out so or so, or not
  Verdict judge(Bounds& bounds, std::int64_t group);
  void finish(Bounds& bounds);
  void compute(std::int64_t group);
  void leave_out(std::int64_t group);

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  WeightPrefetcher& prefetcher_;

  // The current search.
  const HeadOp* op_ = nullptr;
  const CpuMatrix* matrix_ = nullptr;
  const std::byte* quantized_ = nullptr;
  std::int32_t num_rows_ = 0;
  std::int64_t num_logits_ = 0;                    // of a row, from the first
  std::int64_t num_groups_ = 0;                    // that have them
  std::vector<std::byte> inputs_;                  // per row: what its bounds have to know
  std::array<std::atomic<float>, kMaxRows> best_;  // of each row, so far
  std::atomic<std::int64_t> skipped_bytes_ = 0;
};

}  // namespace kvasir::backend
